import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'
import { convertHttp } from '../errors/convert.js'
import { renderHttpError } from '../errors/render-errors.js'
import { ERROR_TABLE } from '../errors/table.js'
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
  if (acceptedOf(headers) === null) {
    throw new ToolError('not_acceptable', ERROR_TABLE.not_acceptable.message)
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
 * Returns true if the client says by name that it accepts streams of server-sent events. Clients that accept anything,
 * or send no Accept header, do not expect a stream.
 */
export const acceptsStreams = (headers: IncomingHttpHeaders): boolean => acceptedOf(headers) === 'streams'

/** The formats in which a client accepts answers: JSON alone, or streams beside JSON. */
type Accepted = 'json' | 'streams'

/**
 * The formats that clients accept, by values of the Accept header that were already parsed. A client sends the same
 * value with every request, and there are only a few kinds of clients.
 */
const known = new Map<string, Accepted>()
const MOST_SPELLINGS = 100
const LONGEST_REMEMBERED = 200

/** Returns the formats that a client accepts; null if it does not accept JSON. */
function acceptedOf({ accept }: IncomingHttpHeaders): Accepted | null {
  if (accept === undefined || accept.trim() === '') return 'json'
  const remembered = known.get(accept)
  if (remembered !== undefined) return remembered
  const { taken, refused } = readRanges(accept)
  const takes = (type: string, subtype: string) => {
    const ranges = [`${type}/${subtype}`, `${type}/*`, '*/*']
    const decisive = ranges.find((range) => taken.has(range) || refused.has(range))
    return decisive !== undefined && taken.has(decisive) ? decisive : null
  }
  if (takes('application', 'json') === null) return null
  const stream = takes('text', 'event-stream')
  const accepted = stream === null || stream === '*/*' ? 'json' : 'streams'
  if (known.size < MOST_SPELLINGS && accept.length <= LONGEST_REMEMBERED) known.set(accept, accepted)
  return accepted
}

/**
 * Reads the media ranges of an Accept header. The ranges in `refused` have `q=0` (RFC 9110, 12.5.1). The most specific
 * range that matches a type decides about it.
 */
function readRanges(accept: string): { taken: Set<string>; refused: Set<string> } {
  const taken = new Set<string>()
  const refused = new Set<string>()
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    ;(isRefused ? refused : taken).add(type)
  }
  return { taken, refused }
}

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
 * Builds the JSON-RPC body of an error. If the id of the request is unknown, `id` is null before revision 2026-07-28,
 * and absent from that revision on.
 */
function errorBody(era: Era, id: RpcErrorBody['id'], code: number, message: string, data: object): object {
  const body = rpcError(id, code, message, data)
  return era === 'modern' && id === null ? { ...body, id: undefined } : body
}
