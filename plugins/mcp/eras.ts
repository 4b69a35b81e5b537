import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import { ERROR_TABLE } from '../errors/table.js'
import { readShowsApps } from './apps.js'
import { RPC } from './read-envelope.js'
import { invalidParams, RpcFailure } from './rpc-failure.js'
import { claimedVersion, type Era, isLegacy, MODERN_VERSION, SUPPORTED_VERSIONS, VERSION_KEY } from './versions.js'

/** A request in a form that is the same for both eras of MCP: legacy revisions, which begin with `initialize`, and modern ones. */
export interface InnerCall {
  method: string
  /** The params of the method, without `_meta` and without members that exist in only one protocol era. */
  params: Record<string, unknown> | undefined
  progressToken?: string | number
  /** The confirm token in `_meta.confirm_token`, unchecked. */
  confirmToken?: unknown
  /**
   * The client as `name/version`. Null if the request could name its client but does not; absent if requests of this
   * protocol era cannot name a client.
   */
  client?: string | null
  /** The W3C Trace Context in the request, unchecked. */
  trace?: TraceOrigin
  /** The ways in which the client can ask its user something, according to this request. */
  canAsk: { form: boolean; url: boolean }
  /** True if the client can show pages beside answers, according to this request. */
  showsApps?: boolean
  /**
   * The person's answers to questions, and the state that the client received with the questions (`requestState`), both
   * as the client sent them.
   */
  inputResponses?: Record<string, unknown>
  requestState?: string
}

/** A call, together with the protocol era in whose format it must be answered. */
export interface ReadCall {
  era: Era
  call: InnerCall
}

/** The result of a call, before it is put into the format of a protocol era. */
export type InnerResult =
  /** The value that a tool returned; it is also sent as text. */
  | { kind: 'value'; value: object }
  /** Any result other than a tool's value; `result` contains its members. */
  | { kind: 'result'; result: object; cache?: Cacheability }
  /** Questions that a person must answer first. The client then repeats the call with the answers. */
  | { kind: 'input'; inputRequests: Record<string, object>; requestState: string }

/** The time for which a client may reuse a result, and whether callers may share it. */
export interface Cacheability {
  ttlMs: number
  cacheScope: 'public' | 'private'
}

export interface ServerInfo {
  name: string
  version: string
}

const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo'
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities'
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo'
/**
 * The key of a subscription's id in `_meta`. The id is that of the request that started the subscription. Every message
 * that belongs to the subscription carries it.
 */
export const SUBSCRIPTION_KEY = 'io.modelcontextprotocol/subscriptionId'

/** The headers of a request that came over HTTP. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/**
 * Reads a request of either protocol era. `headers` are the HTTP headers; they must agree with what a request of
 * 2026-07-28 says in its body.
 *
 * Throws RpcFailure: -32602 for params that no method could have, and for a `_meta` of 2026-07-28 without a required
 * member; -32022 for a revision that this server does not support; -32020 for headers that are missing or contradict
 * the body. Errors that determine the status of the HTTP answer have a `status`.
 */
export function readCall(request: JSONRPCRequest, headers?: RequestHeaders): ReadCall {
  const { method } = request
  const params: unknown = request.params
  const claimed = claimedVersion(params)
  const named = headers?.['mcp-protocol-version']
  // Some clients first call `server/discover` in revision 2026-07-28 and then `initialize` for an earlier revision, but
  // still send the header of 2026-07-28.
  const isHandshake = method === 'initialize' && named === MODERN_VERSION
  const isUnnamed = claimed === undefined && (isHandshake || named === undefined || isLegacy(named))
  if (!isUnnamed && !(isLegacy(claimed) && (named === undefined || isLegacy(named))))
    return readModern(method, params, headers)
  // Older revisions do not have the headers `Mcp-Method` and `Mcp-Name`. If one of them is sent nevertheless, it is
  // checked, because a proxy may have relied on it.
  if (headers !== undefined) compareHeaders(method, isObject(params) ? params : {}, headers)
  return readLegacy(method, params)
}

/**
 * Returns the protocol era that the headers indicate. It determines the format of errors that occur before the body is
 * read.
 */
export const eraOf = (headers: RequestHeaders): Era => {
  const named = headers['mcp-protocol-version']
  return named === undefined || isLegacy(named) ? 'legacy' : 'modern'
}

/**
 * Reads a request of the legacy protocol era. The fields for MCP tasks are left out, because a server that declares no
 * support for tasks must treat such a request as an ordinary one.
 */
function readLegacy(method: string, params: unknown): ReadCall {
  const era = 'legacy'
  if (params === undefined) return { era, call: { method, params: undefined, canAsk: NOBODY } }
  if (!isObject(params)) throw invalidParams('Invalid params: params must be an object')
  const { task: _task, _meta: meta, ...rest } = params
  const call: InnerCall = { method, params: rest, canAsk: NOBODY }
  if (meta !== undefined && meta !== null) Object.assign(call, readMeta(meta))
  return { era, call }
}

const NOBODY = { form: false, url: false }

/** Reads the parts of `_meta` that are the same in both protocol eras. */
function readMeta(meta: unknown): Pick<InnerCall, 'progressToken' | 'confirmToken' | 'trace'> {
  if (!isObject(meta)) throw invalidParams('Invalid params: _meta must be an object')
  const [progressToken, confirmToken] = [meta.progressToken ?? undefined, meta.confirm_token ?? undefined]
  if (progressToken !== undefined && typeof progressToken !== 'string' && !Number.isSafeInteger(progressToken))
    throw invalidParams('Invalid params: _meta.progressToken must be a string or an integer')
  const trace = readTrace(meta)
  return {
    ...(progressToken !== undefined && { progressToken: progressToken as string | number }),
    ...(confirmToken !== undefined && { confirmToken }),
    ...(trace && { trace }),
  }
}

/** Maximum lengths, in characters, of a trace state (W3C Trace Context, 3.3.1.5) and of a trace parent. */
const LONGEST_TRACE = 512

/**
 * Reads the trace of a request. A trace that cannot be read is ignored, because the request must not fail for this
 * reason.
 */
function readTrace({ traceparent, tracestate }: Record<string, unknown>): TraceOrigin | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > LONGEST_TRACE) return undefined
  const hasState = typeof tracestate === 'string' && tracestate.length <= LONGEST_TRACE
  return { traceparent, ...(hasState && { tracestate }) }
}

function readModern(method: string, params: unknown, headers: RequestHeaders | undefined): ReadCall {
  const named = headers?.['mcp-protocol-version']
  // If only the header names a revision, and it is an unknown one, the revision is refused before `_meta` is read,
  // because an unknown revision may require other members there.
  if (claimedVersion(params) === undefined && named !== undefined && named !== MODERN_VERSION) throw unsupported(named)
  const { meta, ...rest } = readEnvelopeOf(params)
  const version = meta[VERSION_KEY] as string
  if (headers !== undefined && named !== undefined && named !== version)
    throw mismatch(`MCP-Protocol-Version is ${show(named)}, and _meta says ${show(version)}`)
  if (version !== MODERN_VERSION) throw unsupported(version)
  const { inputResponses: responses, requestState: state, ...own } = rest.params
  const [inputResponses, requestState] = [responses ?? undefined, state ?? undefined]
  if (headers !== undefined) checkHeaders(method, own, headers)
  if (inputResponses !== undefined && !isObject(inputResponses))
    throw invalidParams('params.inputResponses must be an object')
  if (requestState !== undefined && typeof requestState !== 'string')
    throw invalidParams('params.requestState must be a string')
  return {
    era: 'modern',
    call: {
      method,
      params: own,
      ...readMeta(meta),
      client: clientName(meta[CLIENT_INFO_KEY]) ?? null,
      canAsk: readCanAsk(meta[CAPABILITIES_KEY] as Record<string, unknown>),
      showsApps: readShowsApps(meta[CAPABILITIES_KEY]),
      ...(inputResponses !== undefined && { inputResponses }),
      ...(requestState !== undefined && { requestState }),
    },
  }
}

/**
 * Splits the params of a request of 2026-07-28 into `_meta`, which every such request has, and the other params. Throws
 * an RpcFailure that names what is missing or wrong in `_meta`.
 */
function readEnvelopeOf(params: unknown): {
  meta: Record<string, unknown>
  params: Record<string, unknown>
  _meta: unknown
} {
  const { _meta: meta, ...rest } = isObject(params) ? params : { _meta: undefined }
  if (!isObject(meta)) throw incomplete('params._meta must be an object')
  if (typeof meta[VERSION_KEY] !== 'string') throw incomplete(`params._meta.${VERSION_KEY} must be a string`)
  const version = meta[VERSION_KEY]
  const isOurs = version === MODERN_VERSION
  if (isOurs && !isObject(meta[CAPABILITIES_KEY]))
    throw incomplete(`params._meta.${CAPABILITIES_KEY} must be an object`)
  const info = meta[CLIENT_INFO_KEY] ?? undefined
  if (isOurs && info !== undefined && !isImplementation(info))
    throw incomplete(`params._meta.${CLIENT_INFO_KEY} must have name and version, both strings`)
  return { meta, params: rest, _meta: meta }
}

/**
 * Returns how a client can ask its user, according to its capabilities. Elicitation without a mode means forms (MCP
 * elicitation, "Capabilities").
 */
export function readCanAsk({ elicitation }: Record<string, unknown>): { form: boolean; url: boolean } {
  if (!isObject(elicitation)) return NOBODY
  const [form, url] = [isObject(elicitation.form), isObject(elicitation.url)]
  return { form: form || !url, url }
}

/**
 * Returns `name/version` from a client's description of itself, or only the name if there is no version; returns
 * undefined if there is no name.
 */
export function clientName(info: unknown): string | undefined {
  if (!isObject(info) || typeof info.name !== 'string') return undefined
  return typeof info.version === 'string' ? `${info.name}/${info.version}` : info.name
}

const isImplementation = (info: unknown) =>
  isObject(info) && typeof info.name === 'string' && typeof info.version === 'string'

/** The param whose value the header `Mcp-Name` repeats, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/**
 * Checks the headers of a request of 2026-07-28 (MCP Streamable HTTP, "Server Validation"). Header names are
 * case-insensitive, values are not.
 */
function checkHeaders(method: string, params: Record<string, unknown>, headers: RequestHeaders): void {
  if (headers['mcp-protocol-version'] === undefined) throw mismatch('MCP-Protocol-Version is missing')
  if (headers['mcp-method'] === undefined) throw mismatch('Mcp-Method is missing')
  // A param that is not text is not compared, because the method itself reports this error.
  if (headers['mcp-name'] === undefined && typeof namedIn(method, params) === 'string')
    throw mismatch('Mcp-Name is missing')
  compareHeaders(method, params, headers)
}

/** Returns the value that the header `Mcp-Name` must repeat, or undefined if the method has no such param. */
function namedIn(method: string, params: Record<string, unknown>): unknown {
  const param = NAMED_BY.get(method)
  return param === undefined ? undefined : params[param]
}

/** Checks that `Mcp-Method` and `Mcp-Name` agree with the body, if they are present. */
function compareHeaders(method: string, params: Record<string, unknown>, headers: RequestHeaders): void {
  if (headers['mcp-method'] === undefined && headers['mcp-name'] === undefined) return
  const { method: namedMethod, name } = namesIn(headers)
  if (namedMethod !== undefined && namedMethod !== method)
    throw mismatch(`Mcp-Method is ${show(namedMethod)}, and the body says ${show(method)}`)
  const param = NAMED_BY.get(method)
  const value = namedIn(method, params)
  if (typeof value !== 'string' || name === undefined) return
  if (name === null) throw mismatch('Mcp-Name cannot be decoded')
  if (name !== value) throw mismatch(`Mcp-Name is ${show(name)}, and params.${param} is ${show(value)}`)
}

/**
 * The values of the headers `Mcp-Method` and `Mcp-Name`. A value is undefined if its header is absent; `name` is null
 * if `Mcp-Name` cannot be decoded.
 */
interface HeaderNames {
  method: string | undefined
  name: string | null | undefined
}

const namesOf = new WeakMap<RequestHeaders, HeaderNames>()

/**
 * Reads `Mcp-Method` and `Mcp-Name`. The result is cached for each HTTP request, because all messages of a batch are
 * compared with the same headers.
 */
function namesIn(headers: RequestHeaders): HeaderNames {
  const known = namesOf.get(headers)
  if (known !== undefined) return known
  const name = plain('Mcp-Name', headers['mcp-name'])
  const read = {
    method: plain('Mcp-Method', headers['mcp-method']),
    name: name === undefined ? undefined : decodeHeader(name),
  }
  namesOf.set(headers, read)
  return read
}

/**
 * Maximum length of `Mcp-Method` and `Mcp-Name`, in characters. It is enough for the base64 form of the longest URI
 * that a page can have (5,000 characters).
 */
const LONGEST_NAME = 6_700

/**
 * Returns the value of a header without leading and trailing blanks. A repeated header never equals a valid value,
 * because its values are joined with a comma.
 */
function plain(name: string, header: string | string[] | undefined): string | undefined {
  const value = typeof header === 'string' ? header : header?.join(', ')
  if (value !== undefined && value.length > LONGEST_NAME)
    throw mismatch(`${name} is longer than ${LONGEST_NAME} characters`)
  return value?.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '')
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/
const VISIBLE = /^[\t\x20-\x7e]*$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes a header value (MCP Streamable HTTP, "Value Encoding"); returns null if it is not encoded correctly. */
function decodeHeader(value: string): string | null {
  if (!VISIBLE.test(value)) return null
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const encoded = ENCODED.exec(value)?.[1]
  if (encoded === undefined) return null
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return null
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** Maximum number of characters of a client's text that are quoted in a message. */
const LONGEST_SHOWN = 100
const show = (text: string | string[]) => JSON.stringify(String(text).slice(0, LONGEST_SHOWN))

const BAD_REQUEST = 400
/**
 * The error codes that MCP 2026-07-28 defines for headers that contradict the body and for unsupported versions ("Error
 * Codes").
 */
const HEADER_MISMATCH = -32020
const UNSUPPORTED_VERSION = -32022

const mismatch = (why: string) => new RpcFailure(HEADER_MISMATCH, `Header mismatch: ${why}`, undefined, BAD_REQUEST)

const incomplete = (why: string) => new RpcFailure(RPC.invalidParams, `Invalid params: ${why}`, undefined, BAD_REQUEST)

const unsupported = (requested: string | string[]) =>
  new RpcFailure(
    UNSUPPORTED_VERSION,
    'Unsupported protocol version',
    {
      error: 'unsupported_protocol_version' satisfies ErrorCode,
      supported: SUPPORTED_VERSIONS,
      requested: String(requested).slice(0, LONGEST_SHOWN),
    },
    BAD_REQUEST,
  )

/**
 * Formats a result for a protocol era, as JSON text. A tool's answer occurs twice in this JSON, but is serialised only
 * once.
 */
export function renderResult(inner: InnerResult, era: Era, info: ServerInfo): string {
  if (inner.kind !== 'value') return JSON.stringify(resultOf(inner, era, info))
  const json = JSON.stringify(inner.value)
  const members = `"content":[{"type":"text","text":${JSON.stringify(json)}}],"structuredContent":${json}`
  return era === 'legacy'
    ? `{${members}}`
    : `{"resultType":"complete",${members},"_meta":${JSON.stringify(metaOf(info))}}`
}

/** Formats a result for a protocol era. */
export function resultOf(inner: InnerResult, era: Era, info: ServerInfo): Record<string, unknown> {
  if (inner.kind === 'input')
    return {
      resultType: 'input_required',
      inputRequests: inner.inputRequests,
      requestState: inner.requestState,
      _meta: metaOf(info),
    }
  const result: Record<string, unknown> =
    inner.kind === 'value'
      ? { content: [{ type: 'text', text: JSON.stringify(inner.value) }], structuredContent: inner.value }
      : { ...inner.result }
  if (era === 'legacy') return result
  const cache = inner.kind === 'result' ? inner.cache : undefined
  return { resultType: 'complete', ...result, ...cache, _meta: { ...metaOf(info), ...(result._meta as object) } }
}

const metaOf = (info: ServerInfo) => ({ [SERVER_INFO_KEY]: info })

/** An error formatted for a protocol era, with the status of the HTTP answer. */
export interface RenderedError {
  error: { code: number; message: string; data?: object }
  status: number
  /** True for an unexpected error. Such an error must be logged, and its original message must not reach the client. */
  isUnexpected: boolean
}

/**
 * Formats an error for a protocol era. In 2026-07-28, an unknown resource counts as invalid params, and an unknown
 * method is answered with HTTP status 404. For a refusal, the code in 2026-07-28 is the HTTP status with which other
 * routes of this server answer the same refusal, because that revision reserves the codes that this server uses in
 * earlier revisions.
 */
export function renderFailure(thrown: unknown, era: Era): RenderedError {
  const isUnexpected = !(thrown instanceof RpcFailure)
  const { code, message, data, status = 200 } = isUnexpected ? UNEXPECTED : thrown
  const render = (as: number, httpStatus: number): RenderedError => ({
    error: { code: as, message, ...(data && { data }) },
    status: httpStatus,
    isUnexpected,
  })
  if (era === 'legacy') return render(code, status)
  if (code === RPC.methodNotFound) return render(code, 404)
  if (code === RPC.resourceNotFound) return render(RPC.invalidParams, status)
  if (code === RPC.refused) return render(codeOfRefusal(data), status)
  return render(code, status)
}

const UNEXPECTED = new RpcFailure(RPC.internal, ERROR_TABLE.internal.message)

/** Returns the JSON-RPC code of a refusal for a client of 2026-07-28. */
export function codeOfRefusal(data: object | undefined): number {
  const { error } = (data ?? {}) as { error?: ErrorCode }
  return error === undefined ? RPC.internal : ERROR_TABLE[error].status
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
