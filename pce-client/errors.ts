import type { BulkResultItem } from './types.js'

/**
 * The reason why a call failed, for callers that check codes instead of classes.
 *
 * - `api_error`: the PCE answered with an error status.
 * - `outcome_unknown`: a write was sent, but its answer was lost or was a server error, so it may have been carried
 *   out. Check before repeating it.
 * - `unreachable`: no answer came, because the name lookup, the connection, TLS or a proxy failed or the time ran out.
 * - `deadline`: the time for the whole call ran out between or during attempts.
 * - `aborted`: the caller's signal was aborted.
 * - `job_failed`, `traffic_query_failed`, `traffic_query_timeout`: an asynchronous job or query failed or did not
 *   finish.
 * - `not_found`: a built-in object that every PCE should have is missing.
 * - `ambiguous_name`: several objects have the requested name.
 * - `invalid_href`, `invalid_argument`, `invalid_integer`, `unsupported`: this client refused the call before any
 *   request.
 * - `body_too_large`, `invalid_response`: the answer cannot be used.
 * - `write_refused`: the program that uses this client did not allow the request, which was not sent.
 */
export type PceErrorCode =
  | 'api_error'
  | 'outcome_unknown'
  | 'unreachable'
  | 'deadline'
  | 'aborted'
  | 'job_failed'
  | 'traffic_query_failed'
  | 'traffic_query_timeout'
  | 'not_found'
  | 'ambiguous_name'
  | 'invalid_href'
  | 'invalid_argument'
  | 'invalid_integer'
  | 'unsupported'
  | 'body_too_large'
  | 'invalid_response'
  | 'write_refused'

export interface PceErrorFacts {
  cause?: unknown
  /** The error code of Node or of the network, such as `ECONNREFUSED` or `CERT_HAS_EXPIRED`. */
  reason?: string
  /** The hrefs of the objects that the error is about; for `ambiguous_name`, all objects that have the name. */
  hrefs?: readonly string[]
}

/**
 * The superclass of every error that this client throws (S20). Its message, properties and cause never contain a
 * credential: the HTTP library's own errors carry request headers, so they are never attached.
 */
export class PceError extends Error {
  override readonly name: string = 'PceError'
  readonly reason: string | undefined
  readonly hrefs: readonly string[] | undefined
  /** The results of the requests that had succeeded when a later request of the same bulk call failed. */
  completed: BulkResultItem[] | undefined

  constructor(
    readonly code: PceErrorCode,
    message: string,
    facts: PceErrorFacts = {},
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.reason = facts.reason
    this.hrefs = facts.hrefs
  }

  /**
   * True if the PCE certainly accepted the write, and the outcome is unknown only because the PCE's answer was
   * unusable.
   */
  get isAccepted(): boolean {
    return this.reason === ANSWER_UNREADABLE
  }
}

/** The `reason` of the error for a write that the PCE accepted with status 2xx, but answered with an unusable body. */
export const ANSWER_UNREADABLE = 'ANSWER_UNREADABLE'

/** One entry of the PCE's error body (`[{token, message}]`), truncated. `token` is empty if the PCE gave none. */
export interface PceApiErrorItem {
  token: string
  message: string
}

export interface PceApiErrorFacts {
  status: number
  method: string
  path: string
  errors?: PceApiErrorItem[]
  retryAfter?: number | null
  requestId?: string
  code?: PceErrorCode
}

/** The error tokens by which the PCE says that the object to delete no longer exists (P4, P31). */
const GONE_TOKENS = new Set(['label_already_deleted'])

/**
 * The error for a request that the PCE refused with a status above 399, and for a job or query that it reported as
 * failed (then with the HTTP status of that report). As the specification requires, `mustConnect` throws this class for
 * every failure; `status` is 0 if no answer came.
 */
export class PceApiError extends PceError {
  override readonly name: string = 'PceApiError'
  readonly status: number
  readonly method: string
  /** The path of the failed request below `/api/<version>`, without the query. */
  readonly path: string
  readonly errors: PceApiErrorItem[]
  /** Number of seconds that the PCE asked the client to wait; null if it did not ask. */
  readonly retryAfter: number | null
  /** The `X-Request-Id` of the PCE's answer, for the vendor's support. */
  readonly requestId: string | undefined

  constructor(message: string, facts: PceApiErrorFacts, more: PceErrorFacts = {}) {
    super(facts.code ?? 'api_error', message, more)
    this.status = facts.status
    this.method = facts.method
    this.path = facts.path
    this.errors = facts.errors ?? []
    this.retryAfter = facts.retryAfter ?? null
    this.requestId = facts.requestId
  }

  /** True if the requested object does not exist (any more), so that there is nothing left to delete. */
  get isGone(): boolean {
    return this.status === 404 || this.errors.some(({ token }) => GONE_TOKENS.has(token))
  }
}

/** The error for a port, organisation id, retry count or time-out that is not an integer or is out of range. */
export class PceIntegerError extends PceError {
  override readonly name: string = 'PceIntegerError'

  constructor(message: string) {
    super('invalid_integer', message)
  }
}
