import { endpointOfLocation } from './endpoint.js'
import { PceApiError, PceError } from './errors.js'
import { listOf } from './read-answer.js'
import { parseRetryAfter } from './retry-policy.js'
import type { ClientSettings } from './settings.js'
import type { Answer, Http } from './transport.js'
import type { Page, RequestOptions } from './types.js'

/** Asked for when the PCE does not say how many objects there are; known to be honoured (pce-api b.1). */
const GENEROUS_MAX_RESULTS = 10_000
/** How many objects the PCE answers when it is not told; events and security principals have 100. */
const DEFAULT_PAGE = 500
export const SMALLEST_DEFAULT_PAGE = 100
const FIRST_JOB_WAIT_MS = 1000
const LONGEST_JOB_WAIT_MS = 30_000
const JOB_WAIT_FACTOR = 1.5
const JOB_DEADLINE_MS = 600_000

/** A page of a collection with the total beside it. @throws {PceError} `invalid_response` when it is no list. */
export async function getPage<T>(http: Http, endpoint: string, options: RequestOptions = {}): Promise<Page<T>> {
  const answer = await http.send('GET', endpoint, { ...options, includeOrg: false })
  return { items: listOf<T>(answer, endpoint), totalCount: totalOf(answer) }
}

/**
 * Every object of a collection: the count first (`max_results=0`), then all of them (specification 4.3). An endpoint that
 * ignores `max_results` answers everything at once. The total is a hint, never an excuse to lose objects: it may be missing,
 * wrong, unfiltered or outgrown, so an answer as long as what was asked for is asked for again with more, and where even that
 * can hide objects the asynchronous job decides.
 *
 * @param pageLimit the most objects a synchronous answer of this kind ever has.
 */
export async function getAll<T>(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: RequestOptions = {},
  pageLimit = Infinity,
): Promise<T[]> {
  const page = (maxResults: number) =>
    getPage<T>(http, endpoint, { ...options, params: { ...options.params, max_results: maxResults } })
  const probe = await page(0)
  if (probe.items.length > 0 && (probe.totalCount ?? 0) <= probe.items.length) return probe.items

  const isFiltered = Object.entries(options.params ?? {}).some(
    ([name, value]) => name !== 'max_results' && value !== undefined,
  )
  let wanted = probe.totalCount || GENEROUS_MAX_RESULTS
  for (let round = 0; wanted <= pageLimit && round < 3; round += 1) {
    const { items, totalCount } = await page(wanted)
    const total = totalCount || probe.totalCount || null
    if (items.length === total) return items
    if (items.length < wanted) {
      // Fewer than asked for is everything, unless the release cuts at its page size whatever max_results says. With filters
      // the total may be that of the whole collection, so there (and without a total) only a round number looks cut.
      const isBelowTotal = total !== null && items.length < total && !isFiltered
      if (!isBelowTotal && !isWholePages(items.length)) return items
      break
    }
    if (total === null || total < wanted) break
    wanted = total
  }
  return listOf<T>(await getCollection(http, settings, endpoint, { ...options, includeOrg: false }), endpoint)
}

function isWholePages(count: number): boolean {
  return count > 0 && count % DEFAULT_PAGE === 0
}

/**
 * A collection through the PCE's asynchronous job (pce-api b.3): `Prefer: respond-async`, poll the `Location` at the pace of
 * `Retry-After` growing by half, then fetch the result. An immediate 200 with the list is taken as it is.
 *
 * @throws {PceApiError} for a status above 399, and `job_failed` when the PCE reports the job as failed or does not finish it
 *   within 10 minutes.
 * @throws {PceError} `invalid_response` when a job or result lies on another server.
 */
export async function getCollection(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const { timers, address } = settings
  const followUp = { signal: options.signal, requestId: options.requestId, includeOrg: false }
  const headers = { ...options.headers, prefer: 'respond-async' }
  let answer = await http.send('GET', endpoint, { ...options, headers })
  if (answer.status !== 202) return answer

  const location = headerOf(answer, 'location')
  if (location === undefined)
    throw new PceError('invalid_response', `GET ${endpoint}: the PCE started a job without saying where`)
  const jobEndpoint = endpointOfLocation(address, location)
  const startedAt = timers.now()
  let wait = FIRST_JOB_WAIT_MS
  for (;;) {
    wait = Math.min(parseRetryAfter(headerOf(answer, 'retry-after'), timers.now()) ?? wait, LONGEST_JOB_WAIT_MS)
    if (timers.now() - startedAt + wait > JOB_DEADLINE_MS)
      throw jobFailed(jobEndpoint, answer.status, 'not done after 10 minutes')
    await sleep(settings, wait, options.signal)
    wait *= JOB_WAIT_FACTOR
    answer = await http.send('GET', jobEndpoint, followUp)
    const job = answer.json<{ status?: string; result?: unknown } | undefined>()
    if (job?.status === 'failed') throw jobFailed(jobEndpoint, answer.status, messageOf(job.result))
    if (job?.status !== 'done' && job?.status !== 'completed') continue
    const result = resultHref(job.result)
    if (result === undefined) throw jobFailed(jobEndpoint, answer.status, 'it ended without a result')
    return http.send('GET', endpointOfLocation(address, result), followUp)
  }
}

/** Waits on the client's timers. @throws {PceError} `aborted` when the signal ends it. */
export async function sleep({ timers }: ClientSettings, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    if (signal?.aborted !== true) await timers.sleep(ms, signal)
  } catch (error) {
    if (signal?.aborted !== true) throw error
  }
  if (signal?.aborted === true) throw new PceError('aborted', 'the call was cancelled', { cause: signal.reason })
}

/** Where a finished job or query left its result: `{href}`, or the bare path of traffic queries. */
export function resultHref(result: unknown): string | undefined {
  const href = typeof result === 'object' && result !== null ? (result as { href?: unknown }).href : result
  return typeof href === 'string' && href !== '' ? href : undefined
}

/** Why a job or query failed, in the PCE's words, clipped. */
export function messageOf(result: unknown): string {
  const message = typeof result === 'object' && result !== null ? (result as { message?: unknown }).message : result
  return typeof message === 'string' && message !== '' ? message.slice(0, 1000) : 'the PCE gave no reason'
}

function totalOf(answer: Answer): number | null {
  const text = headerOf(answer, 'x-total-count') ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}

function headerOf(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name]
  return typeof value === 'string' ? value : undefined
}

function jobFailed(path: string, status: number, why: string): PceApiError {
  const errors = [{ token: 'job_failed', message: why }]
  return new PceApiError(`the job ${path} failed: ${why}`, { status, method: 'GET', path, errors, code: 'job_failed' })
}
