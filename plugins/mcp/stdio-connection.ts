import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { answerMessage } from './answer-message.js'
import { ClientRequests } from './ask-client.js'
import type { MessagePorts, ServerPorts } from './ports.js'
import { type Message, readEnvelope, rpcError, RpcProblem } from './read-envelope.js'
import { BATCH_VERSION, claimedVersion, isLegacy, type LegacyVersion } from './versions.js'

const LINE_END = Buffer.from('\n')

/**
 * The connection of one client over stdio, with one JSON-RPC message or batch per line. Messages of both protocol eras
 * may be mixed. Envelopes follow the same rules as over HTTP, and requests get the same answers. In addition, a
 * connection remembers the client's `initialize`, and allows cancellation and questions to the client (D252).
 */
export class StdioConnection {
  /**
   * The protocol version that was negotiated in `initialize`. Until then, it is the version that is assumed for HTTP
   * requests without a version.
   */
  #version: LegacyVersion = BATCH_VERSION
  /** What the client can show to its user, according to its `initialize`. */
  #shows = { forms: false, apps: false }
  readonly #server: ServerPorts
  readonly #asking = new ClientRequests((message) => this.#write(JSON.stringify(message)))
  readonly #batches = new Set<AnswerCollector>()
  /** The requests that are being answered; each is mapped to the controller with which it can be cancelled. */
  readonly #running = new Map<Id, AbortController>()

  #hasListed = false

  /**
   * Creates the connection, which reads nothing before `start`. `onListed` is called once, after the first answer to
   * tools/list, in a later turn of the event loop.
   */
  constructor(
    private readonly input: Readable,
    private readonly output: Writable,
    server: ServerPorts,
    private readonly onListed: () => void = () => {},
  ) {
    this.#server = {
      ...server,
      showsApps: () => this.#shows.apps,
      onInitialize: (client, version, shows) => {
        this.#version = version
        this.#shows = shows
        server.onInitialize?.(client, version, shows)
      },
    }
  }

  /** Starts to read requests from the client and to answer them. */
  start(): void {
    const cut = splitLines((line) => this.#read(line))
    this.input.on('data', cut)
    // The last line of the input may lack a line end.
    this.input.on('end', () => cut(LINE_END))
  }

  #read(line: Buffer | null): void {
    try {
      if (line === null) throw new RpcProblem(-32600, 'Invalid Request: the line is too long')
      const { batch, messages } = readEnvelope(line, this.#version)
      if (batch) this.#openBatch(messages)
      for (const message of messages) this.#deliver(message)
    } catch (error) {
      if (!(error instanceof RpcProblem)) throw error
      this.#write(JSON.stringify(rpcError(error.id, error.code, error.message)))
    }
  }

  #deliver(message: Message): void {
    if (message.kind === 'request') void this.#answer(message.request)
    else if (message.kind === 'response') this.#asking.settle(message.response as JSONRPCMessage & { id?: unknown })
    else if (message.method === 'notifications/cancelled') this.#cancel(message.params)
  }

  async #answer(request: JSONRPCRequest): Promise<void> {
    const controller = new AbortController()
    const { signal } = controller
    this.#running.set(request.id, controller)
    const notify = (message: object) => {
      if (!signal.aborted) this.#write(JSON.stringify(message))
    }
    // In revision 2026-07-28, questions to the client are part of the answer, so none is sent over the connection,
    // whatever an earlier `initialize` said.
    const claimed = claimedVersion(request.params)
    const isAsked = this.#shows.forms && (claimed === undefined || isLegacy(claimed))
    const ports: MessagePorts = {
      signal,
      notify,
      ...(isAsked && { elicit: (form) => this.#asking.elicit(form, signal) }),
    }
    const { text } = await answerMessage(request, this.#server, ports)
    // The client may have reused the id for a newer request before this one was answered. The entry then belongs to the
    // newer request, so it is kept.
    if (this.#running.get(request.id) === controller) this.#running.delete(request.id)
    if (!signal.aborted) this.#reply(request.id, text)
    if (request.method !== 'tools/list' || this.#hasListed) return
    this.#hasListed = true
    setImmediate(this.onListed)
  }

  /** Sends the answer to a request, alone or with the other answers to its batch. */
  #reply(id: Id, text: string): void {
    const batch = [...this.#batches].find((candidate) => candidate.waitsFor(id))
    if (batch === undefined) return this.#write(text)
    batch.add(id, text)
    this.#finish(batch)
  }

  /**
   * Cancels a request: nothing more is sent about it (MCP cancellation, "Behavior Requirements"), and its batch no
   * longer waits for it.
   */
  #cancel(params: unknown): void {
    const id = (params as { requestId?: Id } | undefined)?.requestId
    if (id === undefined) return
    this.#running.get(id)?.abort()
    for (const batch of this.#batches) {
      if (!batch.waitsFor(id)) continue
      batch.drop(id)
      this.#finish(batch)
    }
  }

  #openBatch(messages: Message[]): void {
    const ids = messages.flatMap((message) => (message.kind === 'request' ? [message.id] : []))
    if (ids.length > 0) this.#batches.add(new AnswerCollector(ids))
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

/** Collects the answers to one batch. It is complete when every request has been answered. */
class AnswerCollector {
  readonly #open: Set<Id>
  readonly #answers: string[] = []

  constructor(ids: Iterable<Id>) {
    this.#open = new Set(ids)
  }

  /** Returns true if the request with this id has no answer yet. */
  waitsFor(id: Id): boolean {
    return this.#open.has(id)
  }

  /** Adds the answer to one request, as JSON text. */
  add(id: Id, answer: string): void {
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
    return this.#answers.length === 0 ? '' : `[${this.#answers.join(',')}]`
  }
}

const LINE_FEED = 0x0a
const LONGEST_LINE = 4 * 1024 * 1024

/**
 * Splits a stream of bytes into lines at each LF, and skips blank lines. If a line has more than 4 MiB, its bytes are
 * discarded, and `onLine` is called once with null. The stream is split before it is decoded, so that a character whose
 * bytes arrive in two chunks stays intact.
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
