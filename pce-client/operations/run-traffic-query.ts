import { setMaxListeners } from 'node:events'
import type { AsyncTrafficQuery, TrafficFlow } from '../../schemas/pce/traffic.js'
import { messageOf, resultHref, sleep } from '../async-job.js'
import { PceError, PceIntegerError, PceApiError } from '../errors.js'
import { readCallTimeout, type ClientSettings } from '../settings.js'
import { JsonArraySplitter, type ListBounds } from '../split-json-array.js'
import { isRecord, type Http } from '../transport.js'
import type { StreamTrafficOptions, TrafficQueryProgress } from '../types.js'

const DEFAULT_DEADLINE_SECONDS = 600

/**
 * A traffic query that is being run: its progress reports, and a signal that aborts at its deadline or when the caller
 * cancels.
 */
export interface TrafficRun {
  readonly signal: AbortSignal
  readonly request: {
    signal: AbortSignal
    requestId: string | undefined
    headers: Record<string, string> | undefined
    maxBytes: number | undefined
    includeOrg: false
  }
  remainingMs(): number
  report(progress: Omit<TrafficQueryProgress, 'elapsedMs' | 'flows'> & { flows?: number }): void
  /**
   * Returns the error to throw instead of `error`. If the deadline has passed or the caller has cancelled the query,
   * the result says so; otherwise, it is `error` itself.
   */
  explain(error: unknown): unknown
  close(): void
}

/**
 * Creates the run of a traffic query and starts its deadline. The run's signal aborts after `deadlineSeconds`, or after
 * `totalTimeoutMs` if that is shorter.
 *
 * @throws {PceIntegerError} for an invalid time.
 */
export function beginTrafficRun({ timers }: ClientSettings, options: StreamTrafficOptions): TrafficRun {
  const startedAt = timers.now()
  const seconds = options.deadlineSeconds ?? DEFAULT_DEADLINE_SECONDS
  if (!(seconds > 0)) throw new PceIntegerError('deadlineSeconds must be a number above 0')
  const totalMs = readCallTimeout(options.totalTimeoutMs) ?? Infinity
  const limitMs = Math.min(seconds * 1000, totalMs)
  const controller = new AbortController()
  const cancel = () => controller.abort(options.signal?.reason)
  const timeout =
    totalMs < seconds * 1000
      ? new PceError('deadline', `the traffic query is not done within ${totalMs / 1000} s`, { reason: 'ETIMEDOUT' })
      : new PceError('traffic_query_timeout', `the traffic query was given up after ${seconds} s`)
  if (options.signal?.aborted === true) cancel()
  if (options.signal !== undefined) {
    // One signal may serve many queries at once. With its default limit of listeners, Node would warn of a leak.
    setMaxListeners(0, options.signal)
    options.signal.addEventListener('abort', cancel, { once: true })
  }
  const deadline = setTimeout(() => controller.abort(timeout), Math.min(limitMs, 2 ** 31 - 1))
  return {
    signal: controller.signal,
    request: {
      signal: controller.signal,
      requestId: options.requestId,
      headers: options.headers,
      maxBytes: options.maxBytes,
      includeOrg: false,
    },
    remainingMs: () => {
      const remaining = startedAt + limitMs - timers.now()
      if (remaining <= 0) controller.abort(timeout)
      return remaining
    },
    report: (progress) => options.onProgress?.({ flows: 0, ...progress, elapsedMs: timers.now() - startedAt }),
    explain: (error) => {
      const { aborted } = controller.signal
      const reason: unknown = controller.signal.reason
      if (!aborted || !(error instanceof PceError || error === reason)) return error
      if (reason === timeout) return timeout
      return new PceError('aborted', 'the traffic query was cancelled', { cause: reason })
    },
    close: () => {
      clearTimeout(deadline)
      options.signal?.removeEventListener('abort', cancel)
    },
  }
}

/**
 * Milliseconds to wait before the first poll. The wait is necessary because a query may report a temporary `failed` at
 * the very beginning (T6).
 */
const FIRST_WAIT_MS = 1000
const WAIT_FACTOR = 1.5
const LONGEST_WAIT_MS = 10_000
/**
 * The time, in milliseconds after a query's status became `completed`, during which its result may still be missing
 * because of a known race condition in the PCE.
 */
const RESULT_GRACE_MS = 30_000

/** Polls a submitted query at growing intervals until it is done. @throws {PceApiError} `traffic_query_failed`. */
export async function pollUntilDone(
  http: Http,
  settings: ClientSettings,
  href: string,
  run: TrafficRun,
): Promise<{ query: AsyncTrafficQuery; result: string }> {
  const { timers } = settings
  let completedAt: number | undefined
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * WAIT_FACTOR, LONGEST_WAIT_MS)) {
    await sleep(settings, Math.max(Math.min(wait, run.remainingMs()), 0), run.signal)
    run.remainingMs()
    run.signal.throwIfAborted()
    const answer = await http.send('GET', href, run.request)
    const query = readQuery(answer.json<unknown>())
    if (query === undefined) throw new PceError('invalid_response', `GET ${href}: the PCE answered without the query`)
    run.report({ phase: 'polling', status: query.status, matchesCount: query.matches_count })

    if (query.status === 'failed') throw queryFailed(href, answer.status, messageOf(query.result))
    if (query.status === 'cancelled' || query.status === 'canceled') {
      throw queryFailed(href, answer.status, 'it was cancelled at the PCE')
    }
    // Somebody else has requested the cancellation, because this client stops polling a query before it cancels it. The
    // PCE may never finish the cancellation (P11), so the client does not wait for that.
    if (query.status === 'cancel_requested') {
      throw queryFailed(href, answer.status, 'its cancellation was requested at the PCE')
    }
    if (query.status !== 'completed' && query.status !== 'done') continue
    const result = resultHref(query.result)
    if (result !== undefined) return { query, result }
    completedAt ??= timers.now()
    if (timers.now() - completedAt > RESULT_GRACE_MS)
      throw queryFailed(href, answer.status, 'it completed without a result')
  }
}

/**
 * Returns the traffic query that an answer contains, or undefined if the answer lacks even the status of a query.
 * Counts may be strings of digits; any other count that is not an integer is dropped.
 */
function readQuery(answer: unknown): AsyncTrafficQuery | undefined {
  if (!isRecord(answer) || typeof answer.status !== 'string') return undefined
  const { matches_count: matches, flows_count: flows, ...query } = answer
  const [all, rows] = [readCount(matches), readCount(flows)]
  const counts = { ...(all !== undefined && { matches_count: all }), ...(rows !== undefined && { flows_count: rows }) }
  return { ...query, ...counts } as unknown as AsyncTrafficQuery
}

function readCount(count: unknown): number | undefined {
  const number = typeof count === 'string' && /^\d+$/.test(count) ? Number(count) : count
  return Number.isSafeInteger(number) ? (number as number) : undefined
}

/**
 * Fetches the traffic query again after the download, because only then is its `matches_count` certain to be final. If
 * this fails, returns `query` unchanged, since the rows have already been downloaded.
 */
export async function readAgain(
  http: Http,
  href: string,
  query: AsyncTrafficQuery,
  run: TrafficRun,
): Promise<AsyncTrafficQuery> {
  try {
    return readQuery((await http.send('GET', href, run.request)).json<unknown>()) ?? query
  } catch (error) {
    if (run.signal.aborted) throw error
    return query
  }
}

function queryFailed(path: string, status: number, why: string): PceApiError {
  const errors = [{ token: 'traffic_query_failed', message: why }]
  return new PceApiError(`the traffic query failed: ${why}`, {
    status,
    method: 'GET',
    path,
    errors,
    code: 'traffic_query_failed',
  })
}

/**
 * Downloads the rows of a finished query and passes them on in batches. A download that breaks off starts again from
 * the beginning. The result is a stored file, so the rows that were already passed on are the same and are skipped.
 *
 * @param bounds the limits for the result: a download that exceeds them is aborted.
 * @param deliver receives a batch, and the number of rows passed on so far, including the batch.
 * @throws {PceError} like every call; `invalid_response` for a result that is damaged or incomplete.
 */
export async function downloadFlows(
  http: Http,
  endpoint: string,
  run: TrafficRun,
  bounds: ListBounds,
  deliver: (flows: TrafficFlow[], total: number) => Promise<void>,
): Promise<{ flows: number; unparseable: number }> {
  let splitter = new JsonArraySplitter(bounds)
  let taken = 0
  let position = 0
  let flows = 0
  await http.stream(
    endpoint,
    { ...run.request, withoutDeadline: true },
    {
      begin: () => {
        splitter = new JsonArraySplitter(bounds)
        position = 0
      },
      take: async (chunk) => {
        for (const batch of splitter.push(chunk)) {
          const fresh = batch.slice(Math.max(taken - position, 0))
          position += batch.length
          taken = Math.max(taken, position)
          const rows = fresh.filter(isFlow)
          flows += rows.length
          if (rows.length > 0) await deliver(rows, flows)
        }
      },
    },
  )
  splitter.end()
  return { flows, unparseable: taken - flows }
}

/** Returns true if a row is usable, which means that it has at least a source, a destination and a service. */
function isFlow(row: unknown): row is TrafficFlow {
  if (typeof row !== 'object' || row === null) return false
  const { src, dst, service } = row as Record<string, unknown>
  return [src, dst, service].every((part) => typeof part === 'object' && part !== null)
}

/**
 * Maximum time, in milliseconds, to wait for the PCE to compute draft decisions, which usually takes about 10 s (P39).
 * The limit ensures that the caller gets the rows even if the PCE never finishes.
 */
const LONGEST_LOOKUP_MS = 60_000

/**
 * Makes the PCE compute what the draft policy would decide about the flows of a finished query (P11); the next download
 * then contains these decisions. Returns null on success. If it fails, returns the reason instead of throwing, because
 * the rows can be downloaded without decisions: the PCE release does not support the computation, the account lacks the
 * permission, or the computation fails or does not finish in time. Throws only if the deadline of the whole query
 * passes or the caller cancels it.
 */
export async function addDraftDecisions(
  http: Http,
  settings: ClientSettings,
  href: string,
  run: TrafficRun,
): Promise<string | null> {
  try {
    await http.send('PUT', `${href}/update_rules`, { ...run.request, json: {} })
    let waited = 0
    for (let wait = FIRST_WAIT_MS; waited < LONGEST_LOOKUP_MS; wait = Math.min(wait * WAIT_FACTOR, LONGEST_WAIT_MS)) {
      await sleep(settings, Math.max(Math.min(wait, run.remainingMs()), 0), run.signal)
      run.remainingMs()
      run.signal.throwIfAborted()
      waited += wait
      const answer = await http.send('GET', href, run.request)
      const status = lookupStatus(answer.json<{ rules?: unknown } | null | undefined>()?.rules)
      run.report({ phase: 'draft', status: status ?? 'working' })
      if (status === 'completed' || status === 'done') return null
      if (status === 'failed') return 'the PCE could not look up the draft rules'
    }
    return `the PCE did not look up the draft rules within ${LONGEST_LOOKUP_MS / 1000} s`
  } catch (error) {
    if (run.signal.aborted || !(error instanceof PceError)) throw error
    return error.message
  }
}

/**
 * Reads the status of the computation of draft decisions, which the PCE reports in the field `rules` of the query. No
 * source documents the form of that field (P39), so both a string and an object with a `status` are accepted.
 */
function lookupStatus(rules: unknown): string | undefined {
  const status = typeof rules === 'object' && rules !== null ? (rules as { status?: unknown }).status : rules
  return typeof status === 'string' ? status : undefined
}
