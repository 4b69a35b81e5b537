/** Statuses after which the same request may succeed (S21). */
const RETRIED_STATUSES = new Set([429, 500, 502, 503, 504])
const FIRST_WAIT_MS = 1000
const BACKOFF_FACTOR = 2
const JITTER = 0.1
const LONGEST_RETRY_AFTER_MS = 60_000

/** One failed attempt, reduced to what the policy decides by. */
export interface FailedAttempt {
  nature: RequestNature
  /** The PCE's status, or `lost` when the connection broke or timed out, or `final` for what no repetition can mend. */
  outcome: number | 'lost' | 'final'
  /** Milliseconds, already capped; null when the PCE asked for nothing usable. */
  retryAfterMs: number | null
  /** Retries made before this attempt's failure. */
  retriesMade: number
  retryCount: number
  /** Milliseconds since the call began, and the most the call may take. */
  elapsedMs: number
  totalTimeoutMs: number
  /** 0 <= x < 1 */
  random: number
}

/**
 * The whole of D23: milliseconds to wait before the attempt is repeated, or null to give up. A rejected request (429) was not
 * processed, so it is repeated whatever it does; everything else only when repeating is harmless. A wait that would end past the
 * call's deadline is not begun.
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
 * What a gateway says in place of the server behind it, whose answer it could not use (502) or did not get (504; RFC 9110, 15.6):
 * the request was passed on and its answer lost, as on a connection that breaks. A 500 or 503 is the PCE's own refusal.
 */
export function isLostBehindGateway(outcome: FailedAttempt['outcome']): boolean {
  return outcome === 502 || outcome === 504
}

/** 1, 2, 4, 8, 16 s with 10 % either way, so that callers that failed together do not return together. */
function backoff(retriesMade: number, random: number): number {
  const wait = FIRST_WAIT_MS * BACKOFF_FACTOR ** retriesMade
  return Math.round(wait * (1 - JITTER + 2 * JITTER * random))
}

/** `Retry-After` as the milliseconds this client waits for it: as `readRetryAfter`, at most 60 s. */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  const wait = readRetryAfter(value, now)
  return wait === null ? null : Math.min(wait, LONGEST_RETRY_AFTER_MS)
}

/**
 * `Retry-After` as milliseconds from `now`: whole seconds or an HTTP date (RFC 9110, 10.2.3), a past one meaning at once.
 * Anything else is as good as absent.
 */
export function readRetryAfter(value: string | undefined, now: number): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  // Date.parse reads nearly anything, "-1" included, as some date: a time of day tells a date from garbage.
  if (/\d{2}:\d{2}:\d{2}/.test(text) && !Number.isNaN(Date.parse(text))) return Math.max(Date.parse(text) - now, 0)
  return null
}

/** What repeating a request, or losing its answer, would mean. */
export interface RequestNature {
  /** It may be sent again when its outcome is not known. */
  repeatable: boolean
  /** It may change something at the PCE, so a lost answer leaves its outcome unknown. */
  writes: boolean
}

/** POSTs that only compute an answer. */
const READING_POSTS = new Set([
  'dependencies',
  'impact',
  'rule_search',
  'statistics',
  'traffic_analysis_queries',
  'verify_connection',
])

/** A login that got no answer has changed nothing, but another one may count as another try at the password. */
const LOGIN = '/login_users/authenticate'

/** PUTs that create or start something, so that a second one could do it twice. Every other PUT sets a state. */
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

/** Removals of more than one object. */
const ONCE = ['/sec_policy/pending', '/sec_policy/delete', '/label_mapping_rules/delete']

/**
 * D23 by method and path: GET, PUT and DELETE of one object, bulk_update and bulk_delete may be repeated; what creates or starts
 * something may not, whatever its verb. Discarding all pending changes (DELETE sec_policy/pending) or reverting some (PUT
 * sec_policy/delete) is not an operation on one object: a repetition would also undo edits made in between. Nor is deleting several label
 * mapping rules: a repetition is refused for what the first has deleted, as if nothing had been done (D85).
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
