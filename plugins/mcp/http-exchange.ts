import { PassThrough, type Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import type { MessagePorts } from './ports.js'
import type { Timers } from './progress.js'

/**
 * The time, in milliseconds, after which an unfinished answer becomes a stream, so that proxies and clients see that
 * the call is alive.
 */
const STREAM_AFTER_MS = 5000
const KEEP_ALIVE_MS = 10_000
/**
 * Maximum number of bytes that may wait for a client that does not read. It is twice the size of the largest answer,
 * which is sent as a single event.
 */
const BACKLOG = 4 * 1024 * 1024
/** The time, in milliseconds, for which a batch waits until the client has read the previous answers. */
const PATIENCE_MS = 30_000

/**
 * The answer to one request: the complete JSON-RPC message, and an HTTP status. The status is not used if the answer is
 * part of a stream or a batch.
 */
export interface Answered {
  text: string
  status: number
}

/** Answers one request. Never rejects. */
export type Answer = (request: JSONRPCRequest, ports: MessagePorts) => Promise<Answered>

/**
 * The body of the HTTP answer: JSON text, a stream, or null if the client left before either began. The stream consists
 * of server-sent events or, if the client does not accept these, of whitespace followed by JSON text.
 */
type HttpAnswer = Answered | Readable | null

/**
 * The exchange of messages for one HTTP request to the MCP endpoint, which contains a single JSON-RPC request or a
 * batch. It exists only as long as the HTTP request, so that no answer can reach another caller (D6). The answer is
 * plain JSON, unless something must be sent before it: a progress notification, or a heartbeat after 5 seconds. In that
 * case, it becomes a stream of server-sent events. For a client that accepts only JSON, notifications are left out, and
 * the heartbeats are line breaks before the JSON text (D249).
 */
export class HttpExchange implements MessagePorts {
  /** Resolves exactly once, with the body of the HTTP answer. */
  readonly answer: Promise<HttpAnswer>
  /** Resolves when the exchange is over: either all requests are answered, or the client has left. */
  readonly ended: Promise<void>

  #gone: AbortController | null = null
  #hasLeft = false
  /**
   * The finished answers, which are sent together when the last one is complete. Once there is a stream, answers are
   * sent at once and this list stays empty.
   */
  #texts: string[] = []
  #resolve!: (answer: HttpAnswer) => void
  #noteEnd!: () => void
  #stream: PassThrough | null = null
  #cancelTimer = () => {}
  #closed = false
  /** The characters before the next answer if the stream has no events: in such a stream, a batch is a JSON array. */
  #before: string

  constructor(
    private readonly requests: readonly JSONRPCRequest[],
    private readonly batch: boolean,
    private readonly timers: Timers,
    private readonly hasEvents: boolean,
  ) {
    this.#before = batch ? '[' : ''
    this.answer = new Promise((resolve) => (this.#resolve = resolve))
    this.ended = new Promise((resolve) => (this.#noteEnd = resolve))
  }

  /** Answers the requests one after the other, so that a batch never counts as more than one request in flight. */
  async run(answer: Answer): Promise<void> {
    this.#cancelTimer = this.timers.after(STREAM_AFTER_MS, () => this.#keepAlive())
    let status = 200
    for (const [at, request] of this.requests.entries()) {
      if (this.#closed) return
      const answered = await answer(request, this)
      // The stream may have been opened during this call, and the earlier answers written to it at once.
      if (at > 0 && this.#stream?.writableNeedDrain === true) await this.#untilTaken()
      if (this.#closed) return
      if (this.#stream === null) this.#texts.push(answered.text)
      else this.#send(answered.text)
      status = answered.status
      if (at + 1 < this.requests.length) await this.#untilTaken()
    }
    if (this.#stream === null) {
      const text = this.batch ? `[${this.#texts.join(',')}]` : this.#texts[0]!
      this.#resolve({ text, status: this.batch ? 200 : status })
    } else if (this.batch && !this.hasEvents) this.#stream.write(']')
    this.#end()
  }

  /** Ends the stream, and aborts the running calls that may be aborted. It is called when the client has left. */
  close(): void {
    if (this.#closed) return
    this.#end()
    this.#hasLeft = true
    this.#gone?.abort()
  }

  get signal(): AbortSignal {
    if (this.#gone === null) {
      this.#gone = new AbortController()
      if (this.#hasLeft) this.#gone.abort()
    }
    return this.#gone.signal
  }

  hasLeft(): boolean {
    return this.#hasLeft
  }

  #end(): void {
    this.#closed = true
    this.#cancelTimer()
    this.#stream?.end()
    this.#resolve(null)
    this.#noteEnd()
  }

  notify(message: object): void {
    if (!this.#closed && this.hasEvents) this.#send(JSON.stringify(message))
  }

  #openStream(): PassThrough {
    if (this.#stream === null) {
      this.#stream = new PassThrough()
      // If the client leaves before the stream has ended, the stream emits an error. It is ignored here, because
      // close() is called as well.
      this.#stream.on('error', () => {})
      this.#resolve(this.#stream)
      // These answers may together be larger than BACKLOG, but they were already in memory, so no limit is checked.
      for (const text of this.#texts.splice(0)) this.#stream.write(this.#frame(text))
    }
    return this.#stream
  }

  /**
   * Waits until the client has read the previous answers, so that answers do not accumulate for a slow client. If this
   * takes more than 30 s, the client is treated as having left.
   */
  async #untilTaken(): Promise<void> {
    await nextTurn()
    const stream = this.#stream
    if (stream === null || stream.destroyed || !stream.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const cancel = this.timers.after(PATIENCE_MS, () => stream.destroy())
      const go = () => {
        cancel()
        stream.off('drain', go).off('close', go)
        resolve()
      }
      stream.on('drain', go).on('close', go)
    })
  }

  /** Sends one message as part of the stream. */
  #send(json: string): void {
    const stream = this.#openStream()
    // If a client leaves more than BACKLOG bytes unread, it does not get the answer. The changes of its call are
    // completed nevertheless.
    if (stream.readableLength + stream.writableLength > BACKLOG) stream.destroy()
    else stream.write(this.#frame(json))
  }

  /**
   * Formats a message for the stream. An event needs only one `data` line, because the JSON text contains no raw line
   * breaks.
   */
  #frame(json: string): string {
    if (this.hasEvents) return `event: message\ndata: ${json}\n\n`
    const part = this.#before + json
    this.#before = ','
    return part
  }

  get isDeaf(): boolean {
    return !this.hasEvents
  }

  #keepAlive(): void {
    this.#openStream().write(this.hasEvents ? ': working\n\n' : '\n')
    this.#cancelTimer = this.timers.after(KEEP_ALIVE_MS, () => this.#keepAlive())
  }
}
