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
 * Maximum number of characters that may wait for a client that does not read. It is twice the size of the largest
 * answer, which is sent as a single event.
 */
const BACKLOG = 4 * 1024 * 1024
/** The time, in milliseconds, for which a batch waits for a client to read the previous answers. */
const PATIENCE_MS = 30_000

/**
 * The answer to a request: the complete JSON-RPC message, and its HTTP status, which is used only if the answer is sent
 * neither in a stream nor in a batch.
 */
export interface Answered {
  text: string
  status: number
}

/** Answers one request. Never rejects. */
export type Answer = (request: JSONRPCRequest, ports: MessagePorts) => Promise<Answered>

/**
 * The body of the HTTP answer: a JSON text, a stream of server-sent events, or null if the client left before either
 * began.
 */
type HttpAnswer = Answered | Readable | null

/**
 * The exchange of messages for one HTTP request to the MCP endpoint, which contains a single JSON-RPC request or a
 * batch. It exists only as long as the HTTP request, so that no answer can reach another caller (D6). The answer is
 * plain JSON, unless something must be sent before it: a progress notification, or a heartbeat after 5 seconds. In that
 * case, it becomes a stream of server-sent events.
 */
export class HttpExchange implements MessagePorts {
  /** Resolves exactly once, with the body of the HTTP answer. */
  readonly answer: Promise<HttpAnswer>
  /** Resolves when no further request will be answered. */
  readonly ended: Promise<void>

  #gone: AbortController | null = null
  #hasLeft = false
  /**
   * The answers of a batch that wait until all of its answers are complete. The list is empty once there is a stream,
   * because answers are then sent at once.
   */
  #texts: string[] = []
  #resolve!: (answer: HttpAnswer) => void
  #noteEnd!: () => void
  #stream: PassThrough | null = null
  #cancelTimer = () => {}
  #closed = false

  constructor(
    private readonly requests: readonly JSONRPCRequest[],
    private readonly batch: boolean,
    private readonly timers: Timers,
  ) {
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
      if (this.#closed) return
      if (this.#stream === null) this.#texts.push(answered.text)
      else this.#event(answered.text)
      status = answered.status
      if (at + 1 < this.requests.length) await this.#untilTaken()
    }
    if (this.#stream === null)
      this.#resolve(
        this.batch ? { text: `[${this.#texts.join(',')}]`, status: 200 } : { text: this.#texts[0]!, status },
      )
    this.#end()
  }

  /** Ends the stream and aborts the calls that may be aborted. It is called when the client has left. */
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
    if (!this.#closed) this.#event(JSON.stringify(message))
  }

  #openStream(): PassThrough {
    if (this.#stream === null) {
      this.#stream = new PassThrough()
      // A client that leaves in the middle of the answer destroys the stream. This error is ignored, because close()
      // handles the end of the stream.
      this.#stream.on('error', () => {})
      this.#resolve(this.#stream)
      for (const text of this.#texts) this.#event(text)
      this.#texts = []
    }
    return this.#stream
  }

  /**
   * Waits until the previous answers have been sent, so that answers do not accumulate for a client that reads slowly.
   * A client that has read nothing for 30 s is treated as having left.
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

  /** Sends one event on a single `data` line, which is possible because JSON text contains no raw line breaks. */
  #event(json: string): void {
    const stream = this.#openStream()
    // A client that leaves so much data unread does not get the answer, but the changes of its call are completed.
    if (stream.readableLength + stream.writableLength > BACKLOG) stream.destroy()
    else stream.write(`event: message\ndata: ${json}\n\n`)
  }

  #keepAlive(): void {
    this.#openStream().write(': working\n\n')
    this.#cancelTimer = this.timers.after(KEEP_ALIVE_MS, () => this.#keepAlive())
  }
}
