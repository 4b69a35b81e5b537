import type { BulkResultItem } from './types.js'

/**
 * Why a call failed, for callers that decide by code rather than by class.
 *
 * - `api_error`: the PCE answered with an error status.
 * - `outcome_unknown`: a write was sent and its answer lost (or was a server error): it may have happened. Check before repeating
 * it.
 * - `unreachable`: no answer came: name, connection, TLS, proxy or time-out.
 * - `deadline`: the time for the whole call ran out between or during attempts.
 * - `aborted`: the caller's signal was aborted.
 * - `job_failed`, `traffic_query_failed`, `traffic_query_timeout`: an asynchronous job or query ended badly, or never.
 * - `not_found`: a built-in object that every PCE has was not there.
 * - `ambiguous_name`: several objects have the name that was asked for.
 * - `invalid_href`, `invalid_argument`, `invalid_integer`, `unsupported`: refused here, before any request.
 * - `body_too_large`, `invalid_response`: the answer cannot be used.
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

export interface PceErrorFacts {
  cause?: unknown
  /** Node's or the network's own code (`ECONNREFUSED`, `CERT_HAS_EXPIRED`). */
  reason?: string
  /** The objects in question, where there are some: the candidates of `ambiguous_name`. */
  hrefs?: readonly string[]
}

/**
 * The superclass of everything this client throws (S20). No message, property or cause of it holds a credential: the HTTP library's
 * own errors carry request headers, so they are never attached.
 */
export class PceError extends Error {
  override readonly name: string = 'PceError'
  readonly reason: string | undefined
  readonly hrefs: readonly string[] | undefined
  /** Of a bulk call that failed between two of its requests: the results of the requests that were answered. */
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

  /** The PCE has done what was asked, though its answer does not show the result: an `outcome_unknown` that is known to be done. */
  get isAccepted(): boolean {
    return this.reason === ANSWER_UNREADABLE
  }
}

/** The `reason` of a write that the PCE has accepted, with a 2xx whose body says nothing usable. */
export const ANSWER_UNREADABLE = 'ANSWER_UNREADABLE'

/** One entry of the PCE's error body (`[{token, message}]`), clipped. `token` is empty where the PCE named none. */
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

/** Tokens by which the PCE says that what was to be deleted is gone already (P4, P31). */
const GONE_TOKENS = new Set(['label_already_deleted'])

/**
 * The PCE said no: a status above 399, or a job or query that it reports as failed (then with the status of that report).
 * `mustConnect` throws it for every failure, as the specification says; `status` is 0 where no answer came.
 */
export class PceApiError extends PceError {
  override readonly name: string = 'PceApiError'
  readonly status: number
  readonly method: string
  /** Path below `/api/<version>`, without its query. */
  readonly path: string
  readonly errors: PceApiErrorItem[]
  /** Seconds the PCE asked to wait, or null. */
  readonly retryAfter: number | null
  /** The PCE's `X-Request-Id`, for its support. */
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

  /** What was asked for is not there, or not any more: there is nothing left to delete. */
  get isGone(): boolean {
    return this.status === 404 || this.errors.some(({ token }) => GONE_TOKENS.has(token))
  }
}

/** A number that is not an integer, or lies outside its range: port, organisation id, retries, time-outs. */
export class PceIntegerError extends PceError {
  override readonly name: string = 'PceIntegerError'

  constructor(message: string) {
    super('invalid_integer', message)
  }
}
