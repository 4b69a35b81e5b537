import type { PceResponse, RequestOptions } from './types.js'

/** Request options, and what only this client's own operations may set. */
export interface SendOptions extends RequestOptions {
  retryCount?: number
  /** The body has no deadline unless `totalTimeoutMs` is given: the caller's signal and the idle time-out bound it. */
  streamed?: boolean
  /** A body that is no JSON; sent as it is, instead of `json`. */
  text?: string
}

export interface Answer extends PceResponse {
  /** An earlier attempt of the same call may have been carried out before this answer was given. */
  repeated: boolean
}

/** Takes a streamed body piece by piece. */
export interface BodySink {
  /** Before the first piece, and again when a broken download starts from its beginning. */
  begin(): void
  /** Awaited, so that a slow taker slows the download. */
  take(chunk: Buffer): void | Promise<void>
}

/** What every operation is built on: one request with its retries, buffered or streamed. */
export interface Http {
  /** @throws {PceError} */
  send(method: string, endpoint: string, options?: SendOptions): Promise<Answer>
  /** GET, the body handed over in pieces. @throws {PceError}, or what the sink throws. */
  stream(endpoint: string, options: SendOptions, sink: BodySink): Promise<void>
  closeIdle(): void
}
