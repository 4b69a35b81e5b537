/** HTTP statuses after which a repetition of the same request may succeed (S21). */
const RETRIED_STATUSES = new Set([429, 500, 502, 503, 504])
const FIRST_WAIT_MS = 1000
const BACKOFF_FACTOR = 2
const JITTER = 0.1
const LONGEST_RETRY_AFTER_MS = 60_000

/** The facts about a failed attempt that the retry policy needs. */
export interface FailedAttempt {
  nature: RequestNature
  /** The status of the PCE's answer; `lost` if the connection broke or timed out; `final` if no retry can help. */
  outcome: number | 'lost' | 'final'
  /**
   * Milliseconds that the PCE asked the client to wait, already capped; null if it did not ask or the value is not
   * usable.
   */
  retryAfterMs: number | null
  /** Number of retries that preceded this failed attempt. */
  retriesMade: number
  retryCount: number
  /**
   * Milliseconds since the call began. This differs from `totalTimeoutMs`, which is the maximum duration of the call.
   */
  elapsedMs: number
  totalTimeoutMs: number
  /** A random number x with 0 <= x < 1, for the length of the wait. */
  random: number
}

/**
 * Returns the milliseconds to wait before the next attempt, or null to give up (D23). A 429 means that the request was
 * not processed, so it is always repeated; after any other failure only repeatable requests are repeated. A wait that
 * would end after the call's deadline is not started.
 */
export function waitBeforeRetry(attempt: FailedAttempt): number | null {
  const { outcome, nature, retriesMade } = attempt
  if (retriesMade >= attempt.retryCount || outcome === 'final') return null
  if (outcome !== 429 && !nature.repeatable) return null
  if (outcome !== 'lost' && !RETRIED_STATUSES.has(outcome)) return null
  const wait = attempt.retryAfterMs ?? backoff(retriesMade, attempt.random)
  return attempt.elapsedMs + wait > attempt.totalTimeoutMs ? null : wait
}

/**
 * Returns true for status 502 or 504, with which a gateway says that the server behind it gave an invalid answer or
 * none (RFC 9110, 15.6). The request was passed on and its answer lost, as with a broken connection. A 500 or 503, in
 * contrast, is an answer of the PCE itself.
 */
export function isLostBehindGateway(outcome: FailedAttempt['outcome']): boolean {
  return outcome === 502 || outcome === 504
}

/**
 * Returns the wait before a retry: 1, 2, 4, 8, 16 s and so on, each up to 10 % longer or shorter at random, so that
 * clients that failed at the same time do not all retry at the same time.
 */
function backoff(retriesMade: number, random: number): number {
  const wait = FIRST_WAIT_MS * BACKOFF_FACTOR ** retriesMade
  return Math.round(wait * (1 - JITTER + 2 * JITTER * random))
}

/**
 * Returns the milliseconds that this client waits for a `Retry-After`: the result of `readRetryAfter`, but at most 60
 * s.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  const wait = readRetryAfter(value, now)
  return wait === null ? null : Math.min(wait, LONGEST_RETRY_AFTER_MS)
}

/**
 * Reads `Retry-After` as milliseconds from `now`. It is either whole seconds or an HTTP date (RFC 9110, 10.2.3); a past
 * date means "at once". Anything else counts as absent.
 */
export function readRetryAfter(value: string | undefined, now: number): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  // Date.parse accepts nearly anything as a date, even "-1", so a time of day is required to tell a date from garbage.
  if (/\d{2}:\d{2}:\d{2}/.test(text) && !Number.isNaN(Date.parse(text))) return Math.max(Date.parse(text) - now, 0)
  return null
}

/** The properties of a request that decide whether it may be repeated and what a lost answer means. */
export interface RequestNature {
  /** True if the request may be sent again when its outcome is not known. */
  repeatable: boolean
  /** True if the request may change something at the PCE, so that a lost answer leaves its outcome unknown. */
  writes: boolean
}

/** The last path segments of POSTs that only compute an answer and change nothing. */
const READING_POSTS = new Set([
  'dependencies',
  'impact',
  'rule_search',
  'statistics',
  'traffic_analysis_queries',
  'verify_connection',
])

/**
 * The path of a login. A login whose answer was lost has changed nothing, but repeating it may count as another attempt
 * to log in.
 */
const LOGIN = '/login_users/authenticate'

/**
 * The last path segments of PUTs that create or start something, so that a repetition could do it twice. Every other
 * PUT sets a state and may be repeated.
 */
const STARTING_PUTS = new Set([
  'bulk_create',
  'bulk_import',
  'unpair',
  'upgrade',
  'remote_action',
  'authentication_recovery',
  'update_rules',
  'assign_labels',
])

/** The path endings of requests that remove several objects at once and must not be repeated. */
const ONCE = ['/sec_policy/pending', '/sec_policy/delete', '/label_mapping_rules/delete']

/**
 * Classifies a request by method and path (D23). GET, PUT and DELETE of one object, bulk_update and bulk_delete may be
 * repeated; a request that creates or starts something may not, whatever its method. Discarding all pending changes
 * (DELETE sec_policy/pending) or reverting some (PUT sec_policy/delete) must not be repeated either, because the
 * repetition would also undo edits made in between. A deletion of several label mapping rules must not be repeated
 * either: the PCE refuses the repetition because the rules are gone, as if nothing had been deleted (D85).
 */
export function classifyRequest(method: string, path: string): RequestNature {
  if (method === 'GET' || method === 'HEAD') return { repeatable: true, writes: false }
  const last = path.slice(path.lastIndexOf('/') + 1)
  if (path.endsWith(LOGIN)) return { repeatable: false, writes: false }
  if (method === 'POST')
    return READING_POSTS.has(last) ? { repeatable: true, writes: false } : { repeatable: false, writes: true }
  const isOnce = ONCE.some((end) => path.endsWith(end))
  return { repeatable: !isOnce && !(method === 'PUT' && STARTING_PUTS.has(last)), writes: true }
}
