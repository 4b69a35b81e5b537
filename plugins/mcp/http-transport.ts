import type { IncomingHttpHeaders } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { ToolError } from '../../schemas/errors.js'
import { convertHttp } from '../errors/convert.js'
import { renderHttpError } from '../errors/render-errors.js'
import {
  AnswerCollector,
  BATCH_VERSION,
  isSupported,
  prepareRequest,
  type ProtocolVersion,
  RPC,
  rpcError,
  type RpcErrorBody,
  RpcProblem,
  SUPPORTED_VERSIONS,
} from './read-envelope.js'
import type { Timers } from './progress.js'

/** A call that takes longer becomes a stream, so that proxies and clients see it is alive. */
const STREAM_AFTER_MS = 5000
const KEEP_ALIVE_MS = 10_000
/** Characters that may wait for a client that does not read: twice the largest answer, which is one event. */
const BACKLOG = 4 * 1024 * 1024

/** JSON text, a stream of server-sent events, or null when the client left before there was either. */
type HttpAnswer = string | Readable | null

/**
 * The transport of ONE request to the MCP endpoint: it lives and dies with it, as does the Server behind it, so that no answer can
 * reach another caller (D6). Replaces the SDK's web-standard transport, which costs half of the throughput in
 * Request and Response objects. Answers plain JSON, and turns into a stream of server-sent events when something has to be said
 * before the answer: a progress notification, or a sign of life after 5 seconds.
 */
export class HttpTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Resolves once, with what the HTTP answer is made of. */
  readonly answer: Promise<HttpAnswer>
  /** Resolves once no further request is handed to the Server. */
  readonly ended: Promise<void>

  readonly #collector: AnswerCollector
  #delivered = 0
  #resolve!: (answer: HttpAnswer) => void
  #noteEnd!: () => void
  #stream: PassThrough | null = null
  #cancelTimer = () => {}
  #closed = false

  constructor(
    private readonly requests: readonly JSONRPCRequest[],
    batch: boolean,
    private readonly timers: Timers,
  ) {
    this.#collector = new AnswerCollector(
      requests.map((request) => request.id),
      batch,
    )
    this.answer = new Promise((resolve) => (this.#resolve = resolve))
    this.ended = new Promise((resolve) => (this.#noteEnd = resolve))
  }

  start(): Promise<void> {
    return Promise.resolve()
  }

  /** Hands the requests to the Server, which must have connected itself before. */
  deliver(): void {
    this.#cancelTimer = this.timers.after(STREAM_AFTER_MS, () => this.#keepAlive())
    this.#deliverNext()
  }

  /** One after the other, so that a batch never has more at work than the one place that it takes among the requests in flight. */
  #deliverNext(): void {
    while (!this.#closed && this.#delivered < this.requests.length) {
      const request = this.requests[this.#delivered++]!
      const prepared = prepareRequest(request)
      if ('request' in prepared) return this.onmessage?.(prepared.request)
      this.#take(request.id, prepared.answer)
    }
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) return Promise.resolve()
    if ('method' in message) this.#event(message)
    else if (message.id !== undefined && this.#collector.waitsFor(message.id)) {
      this.#take(message.id, message)
      // Not in the same turn: what has been answered must get onto its way before more piles up.
      if (!this.#closed) setImmediate(() => this.#deliverNext())
    }
    return Promise.resolve()
  }

  /** The client is gone: ends the stream and lets the Server abort what may be aborted. */
  close(): Promise<void> {
    if (!this.#closed) {
      this.#end()
      this.onclose?.()
    }
    return Promise.resolve()
  }

  #take(id: string | number, answer: JSONRPCMessage | RpcErrorBody): void {
    if (this.#stream !== null) this.#event(answer)
    this.#collector.add(id, answer as JSONRPCMessage)
    if (!this.#collector.isComplete) return
    if (this.#stream === null) this.#resolve(this.#collector.text())
    this.#end()
  }

  #end(): void {
    this.#closed = true
    this.#cancelTimer()
    this.#stream?.end()
    this.#resolve(null)
    this.#noteEnd()
  }

  #openStream(): PassThrough {
    if (this.#stream === null) {
      this.#stream = new PassThrough()
      // A client that leaves in the middle destroys the stream; its leaving is handled by close().
      this.#stream.on('error', () => {})
      this.#resolve(this.#stream)
    }
    return this.#stream
  }

  /** One event, on one `data` line: JSON text has no raw line breaks. */
  #event(message: object): void {
    const stream = this.#openStream()
    // The answer is lost to a client that has let so much pile up; what its call changes is not.
    if (stream.readableLength + stream.writableLength > BACKLOG) stream.destroy()
    else stream.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  }

  #keepAlive(): void {
    this.#openStream().write(': working\n\n')
    this.#cancelTimer = this.timers.after(KEEP_ALIVE_MS, () => this.#keepAlive())
  }
}

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

interface RpcErrorAnswer {
  status: number
  /** Seconds for `Retry-After`. */
  retryAfter?: number
  body: RpcErrorBody
}

/**
 * Anything that kept an HTTP request from reaching the MCP Server, in the shape MCP clients read: 400 with the JSON-RPC code of
 * its envelope, or the status of the HTTP rule it broke with -32000. `data` carries our own code and the request id.
 */
export function answerRpcError(thrown: unknown, requestId: string): RpcErrorAnswer {
  if (thrown instanceof RpcProblem) {
    return { status: 400, body: rpcError(thrown.id, thrown.code, thrown.message, { request_id: requestId }) }
  }
  const { status, retryAfter, body } = renderHttpError(convertHttp(thrown), requestId)
  const { message, ...data } = body
  return { status, retryAfter, body: rpcError(null, RPC.transport, message, data) }
}
