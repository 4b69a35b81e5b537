import { isUtf8 } from 'node:buffer'
import { type JSONRPCMessage, type JSONRPCRequest, RELATED_TASK_META_KEY } from '@modelcontextprotocol/sdk/types.js'

const LARGEST_BATCH = 100
const DEEPEST_JSON = 64

/** A message whose JSON-RPC envelope is sound. Its params may still be wrong for its method. */
export type Message =
  | { kind: 'request'; id: string | number; request: JSONRPCRequest }
  | { kind: 'notification'; method: string; params: unknown }
  | { kind: 'response' }

export interface Envelope {
  batch: boolean
  messages: Message[]
}

/**
 * Reads the JSON-RPC envelope of one HTTP body or one line of stdio. Batches belong to protocol version 2025-03-26 alone and are
 * taken whole or not at all: at most 100 messages, none of them `initialize`, requests and responses not mixed, no id twice.
 *
 * Throws RpcProblem: -32700 for anything that is not JSON in UTF-8, -32600 for anything that is not an MCP JSON-RPC 2.0 message
 * (ids are strings or integers).
 */
export function readEnvelope(bytes: Buffer, version: ProtocolVersion): Envelope {
  const body = parse(bytes)
  if (!Array.isArray(body)) return { batch: false, messages: [readMessage(body)] }
  if (version !== BATCH_VERSION) throw invalid(`batches are part of protocol version ${BATCH_VERSION} only`)
  if (body.length === 0) throw invalid('the batch is empty')
  if (body.length > LARGEST_BATCH) throw invalid(`the batch has more than ${LARGEST_BATCH} messages`)
  const messages = body.map(readMessage)
  checkBatch(messages)
  return { batch: true, messages }
}

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new RpcProblem(RPC.parseError, 'Parse error: the body is not UTF-8')
  let body: unknown
  try {
    body = JSON.parse(bytes.toString())
  } catch {
    throw new RpcProblem(RPC.parseError, 'Parse error: the body is not JSON')
  }
  if (exceedsDepth(body, DEEPEST_JSON)) throw invalid(`the body is nested deeper than ${DEEPEST_JSON} levels`)
  return body
}

function checkBatch(messages: Message[]): void {
  const ids = new Set<string | number>()
  for (const message of messages) {
    if (message.kind !== 'request') continue
    if (message.request.method === 'initialize') throw invalid('initialize must not be part of a batch', message.id)
    if (ids.has(message.id)) throw invalid('two requests of the batch have the same id', message.id)
    ids.add(message.id)
  }
  const responses = messages.filter((message) => message.kind === 'response').length
  if (responses > 0 && responses < messages.length) throw invalid('a batch must not mix requests and responses')
}

function readMessage(value: unknown): Message {
  if (!isObject(value)) throw invalid('a message is a JSON object')
  const id = readableId(value.id)
  if (value.jsonrpc !== '2.0') throw invalid('jsonrpc must be "2.0"', id)
  if (!('method' in value)) return readResponse(value, id)
  const { method, params } = value
  if (typeof method !== 'string') throw invalid('method must be a string', id)
  if ('params' in value && (typeof params !== 'object' || params === null))
    throw invalid('params must be an object', id)
  if (!('id' in value)) return { kind: 'notification', method, params }
  if (id === null) throw invalid('id must be a string or an integer')
  return {
    kind: 'request',
    id,
    request: { jsonrpc: '2.0', id, method, ...('params' in value && { params }) } as JSONRPCRequest,
  }
}

function readResponse(value: Record<string, unknown>, id: RpcId): Message {
  const isResult = isObject(value.result) && !('error' in value) && id !== null
  const isError = isObject(value.error) && !('result' in value) && Number.isInteger(value.error.code)
  if (!isResult && !isError) throw invalid('a message has a method, a result or an error', id)
  return { kind: 'response' }
}

const readableId = (id: unknown): RpcId =>
  typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const invalid = (why: string, id: RpcId = null) => new RpcProblem(RPC.invalidRequest, `Invalid Request: ${why}`, id)

/**
 * Whether parsed JSON is nested deeper than `limit`. JSON.parse takes any depth, JSON.stringify and every recursive check after it
 * do not, so this goes level by level instead of calling itself.
 */
function exceedsDepth(value: unknown, limit: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      if (depth === limit) return true
      for (const child of Array.isArray(item) ? (item as unknown[]) : Object.values(item)) {
        if (typeof child === 'object' && child !== null) next.push(child)
      }
    }
    level = next
  }
  return false
}

/**
 * Prepares a request for the SDK's Server, which silently drops anything that does not match its own schemas: params that are a
 * list, a `_meta` that is not an object or a progress token that is neither string nor integer are answered here with -32602.
 * Task fields are left out, since this server declares no tasks and must then treat the request as an ordinary one.
 */
export function prepareRequest(request: JSONRPCRequest): { request: JSONRPCRequest } | { answer: RpcErrorBody } {
  const params: unknown = request.params
  if (params === undefined) return { request }
  const refuse = (why: string) => ({ answer: rpcError(request.id, RPC.invalidParams, `Invalid params: ${why}`) })
  if (!isObject(params)) return refuse('params must be an object')
  const { task, _meta: meta, ...rest } = params
  if (meta === undefined && !('_meta' in params))
    return task === undefined ? { request } : { request: { ...request, params: rest } }
  if (!isObject(meta)) return refuse('_meta must be an object')
  const token = meta.progressToken
  if (token !== undefined && typeof token !== 'string' && !Number.isSafeInteger(token)) {
    return refuse('_meta.progressToken must be a string or an integer')
  }
  const { [RELATED_TASK_META_KEY]: _related, ...kept } = meta
  return { request: { ...request, params: { ...rest, _meta: kept } } }
}

type Id = string | number

/** The answers to one HTTP body or one stdio batch, until there is one for every request. */
export class AnswerCollector {
  readonly #open: Set<Id>
  readonly #answers: JSONRPCMessage[] = []

  constructor(
    ids: Iterable<Id>,
    private readonly batch: boolean,
  ) {
    this.#open = new Set(ids)
  }

  /** Whether an answer to this id is still missing. */
  waitsFor(id: Id): boolean {
    return this.#open.has(id)
  }

  add(id: Id, answer: JSONRPCMessage): void {
    this.#open.delete(id)
    this.#answers.push(answer)
  }

  /** A cancelled request gets no answer (MCP utilities/cancellation). */
  drop(id: Id): void {
    this.#open.delete(id)
  }

  get isComplete(): boolean {
    return this.#open.size === 0
  }

  /** One JSON text: an array for a batch, however few its answers. Empty when every request of it was cancelled. */
  text(): string {
    if (this.#answers.length === 0) return ''
    return JSON.stringify(this.batch ? this.#answers : this.#answers[0])
  }
}

/**
 * JSON-RPC 2.0, section 5.1; from -32000 on they are left to servers, and MCP uses -32000 for what the HTTP transport refuses, as we do
 * for what a gate or the PCE refuses where there is no tool result to say so, and -32002 for a resource that does not exist (MCP resources, "Error Handling").
 */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  transport: -32000,
  refused: -32000,
  resourceNotFound: -32002,
} as const

type RpcId = string | number | null

/** A message that is no JSON-RPC, or not one MCP allows: refused as a whole, over HTTP with status 400. */
export class RpcProblem extends Error {
  override readonly name = 'RpcProblem'
  constructor(
    readonly code: number,
    message: string,
    /** Of the message at fault, where it could be read. */
    readonly id: RpcId = null,
  ) {
    super(message)
  }
}

export interface RpcErrorBody {
  jsonrpc: '2.0'
  id: RpcId
  error: { code: number; message: string; data?: object }
}

export const rpcError = (id: RpcId, code: number, message: string, data?: object): RpcErrorBody => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data && { data }) },
})

/** Protocol versions this server speaks, newest first. */
export const SUPPORTED_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
export type ProtocolVersion = (typeof SUPPORTED_VERSIONS)[number]

const LATEST_VERSION: ProtocolVersion = SUPPORTED_VERSIONS[0]

/** The only version with JSON-RPC batches, and the one an HTTP request without `MCP-Protocol-Version` is taken for. */
export const BATCH_VERSION: ProtocolVersion = '2025-03-26'

export const isSupported = (version: string): version is ProtocolVersion =>
  (SUPPORTED_VERSIONS as readonly string[]).includes(version)

/** MCP lifecycle, version negotiation: the version asked for when we have it, otherwise our newest. Never an error. */
export const negotiate = (asked: string): ProtocolVersion => (isSupported(asked) ? asked : LATEST_VERSION)
