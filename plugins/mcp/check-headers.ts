import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'
import { convertHttp } from '../errors/convert.js'
import { renderHttpError } from '../errors/render-errors.js'
import { codeOfRefusal, eraOf, type RequestHeaders } from './eras.js'
import { RPC, rpcError, type RpcErrorBody, RpcProblem } from './read-envelope.js'
import type { Era } from './versions.js'

/**
 * Checks the headers of a POST to the MCP endpoint before its body is read (MCP Streamable HTTP, "Sending Messages").
 * The headers about the protocol version are checked only after the body was read, because errors about the version
 * must contain the id of the request.
 *
 * Throws ToolError `not_acceptable` (406) or `unsupported_media_type` (415).
 */
export function checkHeaders(headers: IncomingHttpHeaders): void {
  if (!acceptsBoth(headers.accept ?? '')) {
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
}

/**
 * The values of the Accept header that are known to accept both media types. They are remembered, because a client
 * sends the same value with every request, and there are only a few different clients.
 */
const sufficient = new Set<string>()
const MOST_SPELLINGS = 100
const LONGEST_REMEMBERED = 200

function acceptsBoth(accept: string): boolean {
  if (sufficient.has(accept)) return true
  const types = acceptedTypes(accept)
  if (!accepts(types, 'application', 'json') || !accepts(types, 'text', 'event-stream')) return false
  if (sufficient.size < MOST_SPELLINGS && accept.length <= LONGEST_REMEMBERED) sufficient.add(accept)
  return true
}

/** Returns the media ranges of an Accept header, except for ranges that `q=0` excludes (RFC 9110, 12.5.1). */
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

interface RpcErrorAnswer {
  status: number
  /** The value of the header `Retry-After`, in seconds; absent if waiting does not help. */
  retryAfter?: number
  body: object
}

/**
 * Builds the answer to an HTTP request that could not be processed, in the form that MCP clients read. For an invalid
 * envelope, the status is 400, and the JSON-RPC code says what is wrong. For any other error, the status is that of the
 * violated HTTP rule. The JSON-RPC code is then -32000 in revisions before 2026-07-28, and equal to the status in later
 * revisions. `data` contains this server's own error code and the request id.
 */
export function answerRpcError(thrown: unknown, requestId: string, headers: RequestHeaders): RpcErrorAnswer {
  const era = eraOf(headers)
  if (thrown instanceof RpcProblem) {
    return { status: 400, body: errorBody(era, thrown.id, thrown.code, thrown.message, { request_id: requestId }) }
  }
  const { status, retryAfter, body } = renderHttpError(convertHttp(thrown), requestId)
  const { message, ...data } = body
  const code = era === 'modern' ? codeOfRefusal(data) : RPC.transport
  return { status, retryAfter, body: errorBody(era, null, code, message, data) }
}

/**
 * Builds the JSON-RPC body of an error. If the id of the request is unknown, `id` is null in earlier revisions, and
 * absent from revision 2026-07-28 on.
 */
function errorBody(era: Era, id: RpcErrorBody['id'], code: number, message: string, data: object): object {
  const body = rpcError(id, code, message, data)
  return era === 'modern' && id === null ? { ...body, id: undefined } : body
}
