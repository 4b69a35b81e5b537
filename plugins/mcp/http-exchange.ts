import { PassThrough, type Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import type { MessagePorts } from './ports.js'
import type { Timers } from './progress.js'

/** A call that takes longer becomes a stream, so that proxies and clients see it is alive. */
const STREAM_AFTER_MS = 5000
const KEEP_ALIVE_MS = 10_000
/** Characters that may wait for a client that does not read: twice the largest answer, which is one event. */
const BACKLOG = 4 * 1024 * 1024
/** How long a batch waits for a client to read what has been answered so far. */
const PATIENCE_MS = 30_000

/** What a request is answered with: the whole JSON-RPC message, and the HTTP status where that can still be chosen. */
export interface Answered {
  text: string
  status: number
}

/** Answers one request. Never rejects. */
export type Answer = (request: JSONRPCRequest, ports: MessagePorts) => Promise<Answered>

/** A JSON text, a stream of server-sent events, or null when the client left before there was either. */
type HttpAnswer = Answered | Readable | null

/**
 * ONE request to the MCP endpoint, or one batch: it lives and dies with the HTTP request, so that no answer can reach another caller (D6).
 * Answers plain JSON, and turns into a stream of server-sent events when something has to be said before the answer: a progress
 * notification, or a sign of life after 5 seconds.
 */
export class HttpExchange implements MessagePorts {
  /** Resolves once, with what the HTTP answer is made of. */
  readonly answer: Promise<HttpAnswer>
  /** Resolves once no further request is answered. */
  readonly ended: Promise<void>

  #gone: AbortController | null = null
  #hasLeft = false
  /** Answers that wait for the others; none once there is a stream, which has them all. */
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

  /** One after the other, so that a batch never has more at work than the one place that it takes among the requests in flight. */
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

  /** The client is gone: ends the stream and aborts what may be aborted. */
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
      // A client that leaves in the middle destroys the stream; its leaving is handled by close().
      this.#stream.on('error', () => {})
      this.#resolve(this.#stream)
      for (const text of this.#texts) this.#event(text)
      this.#texts = []
    }
    return this.#stream
  }

  /**
   * Lets what has been answered get onto its way before more piles up, at the pace of a client that reads slowly. One that has taken
   * nothing for 30 s is as good as gone.
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

  /** One event, on one `data` line: JSON text has no raw line breaks. */
  #event(json: string): void {
    const stream = this.#openStream()
    // The answer is lost to a client that has let so much pile up; what its call changes is not.
    if (stream.readableLength + stream.writableLength > BACKLOG) stream.destroy()
    else stream.write(`event: message\ndata: ${json}\n\n`)
  }

  #keepAlive(): void {
    this.#openStream().write(': working\n\n')
    this.#cancelTimer = this.timers.after(KEEP_ALIVE_MS, () => this.#keepAlive())
  }
}
