import type { Readable, Writable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  type JSONRPCMessage,
  type JSONRPCNotification,
  type JSONRPCRequest,
  RELATED_TASK_META_KEY,
} from '@modelcontextprotocol/sdk/types.js'
import { answerMessage } from './answer-message.js'
import { readCall, renderFailure } from './eras.js'
import type { ServerPorts } from './ports.js'
import { type Message, readEnvelope, rpcError, RpcProblem } from './read-envelope.js'
import { BATCH_VERSION, claimedVersion, isLegacy, type LegacyVersion } from './versions.js'

const LINE_END = Buffer.from('\n')

/**
 * The MCP transport over stdio, with one JSON-RPC message or batch per line. It replaces the SDK's transport, which
 * drops invalid lines silently (so that the sender waits for ever), fails at lines of 10 MiB, and does not support
 * batches. The rules for envelopes are the same as over HTTP.
 *
 * This transport itself answers requests of 2026-07-28, each independently of the others. Only messages of revisions
 * with a handshake are passed to the SDK's Server. One connection may contain messages of both protocol eras, in any
 * order.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /**
   * The protocol version that both sides use. Until `initialize` sets it, it is the version that is assumed for HTTP
   * requests without a version.
   */
  version: LegacyVersion = BATCH_VERSION

  readonly #batches = new Set<AnswerCollector>()
  /** The requests of 2026-07-28 that are being answered, each with the controller that cancels it. */
  readonly #running = new Map<string | number, AbortController>()

  /** Creates the transport. `server` answers requests of 2026-07-28. */
  constructor(
    private readonly input: Readable,
    private readonly output: Writable,
    private readonly server: ServerPorts,
  ) {}

  start(): Promise<void> {
    const cut = splitLines((line) => this.#read(line))
    this.input.on('data', cut)
    // The input may end without a line end after its last line.
    this.input.on('end', () => cut(LINE_END))
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    const id = 'id' in message && !('method' in message) ? message.id : undefined
    const batch = id === undefined ? undefined : [...this.#batches].find((candidate) => candidate.waitsFor(id))
    if (id === undefined || batch === undefined) {
      this.#write(JSON.stringify(message))
    } else {
      batch.add(id, message)
      this.#finish(batch)
    }
    return Promise.resolve()
  }

  close(): Promise<void> {
    this.input.pause()
    this.onclose?.()
    return Promise.resolve()
  }

  #read(line: Buffer | null): void {
    try {
      if (line === null) throw new RpcProblem(-32600, 'Invalid Request: the line is too long')
      const { batch, messages } = readEnvelope(line, this.version)
      if (batch) this.#openBatch(messages)
      for (const message of messages) this.#deliver(message)
    } catch (error) {
      if (!(error instanceof RpcProblem)) throw error
      this.#write(JSON.stringify(rpcError(error.id, error.code, error.message)))
    }
  }

  #deliver(message: Message): void {
    if (message.kind === 'request') this.#deliverRequest(message.request)
    else if (message.kind === 'response') this.onmessage?.(message.response)
    else if (message.method !== 'notifications/cancelled' || !this.#cancel(message.params)) {
      this.onmessage?.({
        jsonrpc: '2.0',
        method: message.method,
        ...(message.params !== undefined && { params: message.params }),
      } as JSONRPCNotification)
      if (message.method === 'notifications/cancelled') this.#dropFromBatch(message.params)
    }
  }

  #deliverRequest(request: JSONRPCRequest): void {
    const claimed = claimedVersion(request.params)
    if (claimed !== undefined && !isLegacy(claimed)) return void this.#answer(request)
    try {
      // The transport validates the request itself, because the SDK's Server silently drops requests that do not match
      // its own schemas.
      readCall(request)
      this.onmessage?.(withoutTask(request))
    } catch (thrown) {
      const { error } = renderFailure(thrown, 'legacy')
      void this.send({ jsonrpc: '2.0', id: request.id, error })
    }
  }

  async #answer(request: JSONRPCRequest): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    this.#running.set(request.id, controller)
    const notify = (message: object) => {
      if (!signal.aborted) this.#write(JSON.stringify(message))
    }
    const { text } = await answerMessage(request, this.server, { signal, notify })
    // A client may have reused the id for a newer request before this one was answered. The entry then belongs to the
    // newer request and is kept.
    if (this.#running.get(request.id) === controller) this.#running.delete(request.id)
    if (!signal.aborted) this.#write(text)
  }

  /**
   * Cancels a request of 2026-07-28. Returns false if no running request has this id. Nothing more is sent about a
   * cancelled request (MCP cancellation, "Behavior Requirements").
   */
  #cancel(params: unknown): boolean {
    const id = (params as { requestId?: string | number } | undefined)?.requestId
    const controller = id === undefined ? undefined : this.#running.get(id)
    controller?.abort()
    return controller !== undefined
  }

  #openBatch(messages: Message[]): void {
    const ids = messages.flatMap((message) => (message.kind === 'request' ? [message.id] : []))
    if (ids.length > 0) this.#batches.add(new AnswerCollector(ids))
  }

  /**
   * Removes a cancelled request from its batch. The SDK's Server does not answer it, so the batch would otherwise wait
   * for ever.
   */
  #dropFromBatch(params: unknown): void {
    const id = (params as { requestId?: string | number } | undefined)?.requestId
    if (id === undefined) return
    for (const batch of this.#batches) {
      if (!batch.waitsFor(id)) continue
      batch.drop(id)
      this.#finish(batch)
    }
  }

  #finish(batch: AnswerCollector): void {
    if (!batch.isComplete) return
    this.#batches.delete(batch)
    const text = batch.text()
    if (text !== '') this.#write(text)
  }

  #write(json: string): void {
    if (this.output.writable) this.output.write(`${json}\n`)
  }
}

type Id = string | number

/** A collector of the answers to one batch. It is complete when every request has an answer. */
class AnswerCollector {
  readonly #open: Set<Id>
  readonly #answers: JSONRPCMessage[] = []

  constructor(ids: Iterable<Id>) {
    this.#open = new Set(ids)
  }

  /** Returns true if the request with this id has no answer yet. */
  waitsFor(id: Id): boolean {
    return this.#open.has(id)
  }

  add(id: Id, answer: JSONRPCMessage): void {
    this.#open.delete(id)
    this.#answers.push(answer)
  }

  /** Removes a cancelled request, which gets no answer (MCP utilities/cancellation). */
  drop(id: Id): void {
    this.#open.delete(id)
  }

  get isComplete(): boolean {
    return this.#open.size === 0
  }

  /** Returns the JSON text of the answers, always an array, or an empty text if every request was cancelled. */
  text(): string {
    if (this.#answers.length === 0) return ''
    return JSON.stringify(this.#answers)
  }
}

/**
 * Removes the task fields from a request. This server declares no support for tasks, so such a request is treated as an
 * ordinary one.
 */
function withoutTask(request: JSONRPCRequest): JSONRPCRequest {
  if (request.params === undefined) return request
  const { task: _task, _meta: meta, ...rest } = request.params
  if (!meta) return { ...request, params: rest }
  const { [RELATED_TASK_META_KEY]: _related, ...kept } = meta
  return { ...request, params: { ...rest, _meta: kept } }
}

const LINE_FEED = 0x0a
const LONGEST_LINE = 4 * 1024 * 1024

/**
 * Splits a byte stream into lines at each LF, and skips blank lines. If a line has more than 4 MiB, `onLine` is called
 * once with null, and the bytes are discarded. Bytes are split instead of text, so that a character whose bytes arrive
 * in two chunks stays intact.
 */
function splitLines(onLine: (line: Buffer | null) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let length = 0
  const add = (part: Buffer) => {
    length += part.length
    if (length <= LONGEST_LINE) parts.push(part)
    else parts = []
  }
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end))
      const line = length > LONGEST_LINE ? null : Buffer.concat(parts)
      parts = []
      length = 0
      start = end + 1
      if (line === null || !isBlank(line)) onLine(line)
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
}

/**
 * Returns true if a line is empty or consists only of the CR of a CRLF. In other lines, this CR does no harm, because
 * JSON.parse ignores it.
 */
const isBlank = (line: Buffer) => line.length === 0 || (line.length === 1 && line[0] === 0x0d)
