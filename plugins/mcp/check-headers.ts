import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'
import { BATCH_VERSION, isSupported, SUPPORTED_VERSIONS, type ProtocolVersion } from './versions.js'

/**
 * What the headers of a POST to the MCP endpoint must say, checked before its body is read (MCP Streamable HTTP, "Sending
 * Messages" and "Protocol Version Header"). Returns the protocol version of the request.
 *
 * Throws ToolError `not_acceptable` (406), `unsupported_media_type` (415) or `unsupported_protocol_version` (400).
 */
export function checkHeaders(headers: IncomingHttpHeaders): ProtocolVersion {
  const accepted = acceptedTypes(headers.accept ?? '')
  if (!accepts(accepted, 'application', 'json') || !accepts(accepted, 'text', 'event-stream')) {
    throw new ToolError('not_acceptable', 'The client must accept both application/json and text/event-stream.')
  }
  const mediaType = (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (mediaType !== 'application/json') {
    throw new ToolError('unsupported_media_type', 'The body must be application/json.')
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') {
    throw new ToolError('unsupported_media_type', 'The body must not be compressed.')
  }
  const version = headers['mcp-protocol-version'] ?? BATCH_VERSION
  if (typeof version !== 'string' || !isSupported(version)) {
    throw new ToolError(
      'unsupported_protocol_version',
      `Unsupported protocol version (supported versions: ${SUPPORTED_VERSIONS.join(', ')})`,
      { supported: [...SUPPORTED_VERSIONS] },
    )
  }
  return version
}

/** Media ranges of an Accept header that are not ruled out by `q=0` (RFC 9110, 12.5.1). */
function acceptedTypes(accept: string): Set<string> {
  const types = new Set<string>()
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    if (!parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) types.add(type)
  }
  return types
}

const accepts = (types: Set<string>, type: string, subtype: string) =>
  types.has(`${type}/${subtype}`) || types.has(`${type}/*`) || types.has('*/*')
