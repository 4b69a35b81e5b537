import { isUtf8 } from 'node:buffer'
import type { JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { BATCH_VERSION, claimedVersion, isLegacy } from './versions.js'

const LARGEST_BATCH = 100
const DEEPEST_JSON = 64

/** A message with a valid JSON-RPC envelope. Its params may still be wrong for its method. */
export type Message =
  | { kind: 'request'; id: string | number; request: JSONRPCRequest }
  | { kind: 'notification'; method: string; params: unknown }
  | { kind: 'response'; response: JSONRPCMessage }

export interface Envelope {
  batch: boolean
  messages: Message[]
}

/**
 * Reads the JSON-RPC envelope of one HTTP body or one line of stdio. Batches exist only in protocol version 2025-03-26.
 * A batch is accepted or refused as a whole. It may contain at most 100 messages, but no `initialize` and no messages
 * of 2026-07-28. Requests and responses must not be mixed, and no two requests may have the same id.
 *
 * Throws RpcProblem: -32700 for anything that is not JSON in UTF-8, -32600 for anything that is not an MCP JSON-RPC 2.0
 * message (ids are strings or integers).
 */
export function readEnvelope(bytes: Buffer, version: string): Envelope {
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
    const claimed = claimedVersion(message.request.params)
    if (claimed !== undefined && !isLegacy(claimed))
      throw invalid(`batches are part of protocol version ${BATCH_VERSION} only`, message.id)
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
  return { kind: 'response', response: value as JSONRPCMessage }
}

const readableId = (id: unknown): RpcId =>
  typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const invalid = (why: string, id: RpcId = null) => new RpcProblem(RPC.invalidRequest, `Invalid Request: ${why}`, id)

/**
 * Returns true if parsed JSON is nested more deeply than `limit`. The check works level by level instead of
 * recursively, because JSON.parse accepts any depth, while JSON.stringify and all recursive code after it do not.
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
 * The error codes of JSON-RPC 2.0, section 5.1, which leaves the codes from -32099 to -32000 to servers. MCP uses
 * -32000 for requests that the HTTP transport refuses, and -32002 for a resource that does not exist (MCP resources,
 * "Error Handling"). This server also uses -32000 for a refusal by a gate or the PCE if there is no tool result in
 * which it could be reported.
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

/**
 * The error for a message that is not JSON-RPC or that MCP does not permit. A batch with such a message is refused as a
 * whole. Over HTTP, the status is 400.
 */
export class RpcProblem extends Error {
  override readonly name = 'RpcProblem'
  constructor(
    readonly code: number,
    message: string,
    /** The id of the invalid message; null if it could not be read. */
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
