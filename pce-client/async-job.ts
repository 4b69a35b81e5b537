import { endpointOfLocation } from './endpoint.js'
import { PceApiError, PceError } from './errors.js'
import { parseRetryAfter } from './retry-policy.js'
import type { ClientSettings } from './settings.js'
import { JsonArraySplitter } from './split-json-array.js'
import { isRecord, listOf, notObjects, type TracedResponse, type Http, type SendOptions } from './transport.js'
import type { CollectionOptions, CollectionProgress } from './types.js'

const FIRST_WAIT_MS = 1000
/**
 * Minimum number of milliseconds between two polls of a job, even if the PCE asks for a shorter wait. Otherwise, a
 * `Retry-After` of 0 would cause thousands of requests for one job.
 */
const SHORTEST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
const WAIT_FACTOR = 1.5
const DEADLINE_MS = 600_000
const CLEAN_UP_MS = 5000

/**
 * The functions that read the two possible answers of the PCE to a request for a collection: `direct` reads a list that
 * was sent at once, `file` reads the result file of a job.
 */
export interface Reader<T> {
  direct(answer: TracedResponse): T | Promise<T>
  file(endpoint: string, request: SendOptions): Promise<T>
}

/** A job that is running at the PCE, and the state that all requests for this job share. */
interface Job {
  endpoint: string
  /** True if the PCE has reported the job as failed or no longer has the job. Then there is nothing left to delete. */
  isLost: boolean
  /**
   * Returns the options for the next request: the caller's options, with a time-out that does not exceed the time left
   * for the whole job.
   */
  request(): SendOptions
  /** Waits before the next poll. @throws {PceError} if the wait would exceed the time allowed for the whole job. */
  wait(ms: number): Promise<void>
  report(phase: CollectionProgress['phase'], status?: string): void
}

/**
 * Fetches a collection through an asynchronous job of the PCE (P10): sends `Prefer: respond-async`, polls the URL in
 * the `Location` header, and then fetches the result. The time between polls follows `Retry-After`; without that
 * header, each wait is 1.5 times the previous one. If the PCE answers with 200 and the list at once, that list is the
 * result. If the call fails or is cancelled, the job is deleted at the PCE.
 *
 * @throws {PceApiError} for a status above 399, and `job_failed` when the PCE reports the job as failed, no longer has
 *   the job or its result, or does not finish within 10 minutes.
 * @throws {PceError} `invalid_response` when the address of the job or of its result is on another server.
 */
export async function getCollection(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: CollectionOptions = {},
): Promise<TracedResponse> {
  return collect(http, settings, endpoint, options, {
    direct: (answer) => answer,
    file: (result, request) => http.send('GET', result, request),
  })
}

/**
 * Like `getCollection`, but returns the parsed objects. The result file is parsed while it arrives, so its complete
 * text is never held in memory, and the limits for collected lists apply to it (D74).
 */
export async function getListAsync<T>(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: CollectionOptions = {},
): Promise<T[]> {
  return collect<T[]>(
    http,
    settings,
    endpoint,
    { ...options, includeOrg: false },
    {
      direct: (answer) => listOf<T>(answer, endpoint),
      file: async (result, request) => {
        let splitter = new JsonArraySplitter(settings.bounds.collected)
        let items: T[] = []
        const begin = () => {
          splitter = new JsonArraySplitter(settings.bounds.collected)
          items = []
        }
        const take = async (chunk: Buffer) => {
          for (const batch of await splitter.pushInTurns(chunk)) {
            if (!batch.every(isRecord)) throw notObjects(endpoint)
            for (const item of batch) items.push(item as T)
          }
        }
        await http.stream(result, request, { begin, take })
        splitter.end()
        return items
      },
    },
  )
}

/**
 * Fetches a collection like `getCollection`, and lets `reader` read the result: the list itself if the PCE sent it at
 * once, or the result file of the PCE's job.
 */
export async function collect<T>(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: CollectionOptions,
  reader: Reader<T>,
): Promise<T> {
  const startedAt = settings.timers.now()
  const headers = { ...options.headers, prefer: 'respond-async' }
  const answer = await http.send('GET', endpoint, { ...options, headers })
  if (answer.status !== 202) return reader.direct(answer)

  const { location } = answer.headers
  if (typeof location !== 'string')
    throw new PceError('invalid_response', `GET ${endpoint}: the PCE started a job without saying where`)
  const job = beginJob(settings, endpointOfLocation(settings.address, location), startedAt, options)
  try {
    job.report('submitted')
    const result = await pollUntilDone(http, settings, job, answer)
    job.report('downloading')
    const collected = await reader.file(result, job.request()).catch(rethrowGone(result))
    job.report('done')
    return collected
  } catch (error) {
    if (!job.isLost) await deleteJob(http, settings, job.endpoint, options)
    throw error
  }
}

function beginJob(settings: ClientSettings, endpoint: string, startedAt: number, options: CollectionOptions): Job {
  const { timers } = settings
  const { signal, requestId, totalTimeoutMs, maxBytes } = options
  const limitMs = totalTimeoutMs ?? DEADLINE_MS
  const elapsed = () => timers.now() - startedAt
  return {
    endpoint,
    isLost: false,
    request: () => ({
      signal,
      requestId,
      headers: options.headers,
      includeOrg: false,
      maxBytes,
      totalTimeoutMs: totalTimeoutMs === undefined ? undefined : Math.max(totalTimeoutMs - elapsed(), 1),
    }),
    wait: async (ms) => {
      if (elapsed() + ms > limitMs) {
        if (totalTimeoutMs === undefined) throw jobFailed(endpoint, 200, 'not done after 10 minutes')
        throw new PceError('deadline', `the job ${endpoint} is not done within ${totalTimeoutMs / 1000} s`)
      }
      await sleep(settings, ms, signal)
    },
    report: (phase, status) => options.onProgress?.({ phase, status, elapsedMs: elapsed() }),
  }
}

/** Polls the job until it is done, and returns the endpoint of its result. */
async function pollUntilDone(http: Http, settings: ClientSettings, job: Job, started: TracedResponse): Promise<string> {
  const { address, timers } = settings
  let answer = started
  for (let wait = FIRST_WAIT_MS; ; wait *= WAIT_FACTOR) {
    const { 'retry-after': asked } = answer.headers
    const pace = parseRetryAfter(typeof asked === 'string' ? asked : undefined, timers.now())
    wait = Math.min(Math.max(pace ?? wait, SHORTEST_WAIT_MS), LONGEST_WAIT_MS)
    await job.wait(wait)
    answer = await http.send('GET', job.endpoint, job.request()).catch((error: unknown) => {
      job.isLost = isGone(error)
      return rethrowGone(job.endpoint)(error)
    })
    const state = answer.json<{ status?: string; result?: unknown } | null | undefined>()
    job.report('polling', state?.status)
    if (state?.status === 'failed') {
      job.isLost = true
      throw jobFailed(job.endpoint, answer.status, messageOf(state.result))
    }
    if (state?.status !== 'done' && state?.status !== 'completed') continue
    const result = resultHref(state.result)
    if (result === undefined) throw jobFailed(job.endpoint, answer.status, 'it ended without a result')
    return endpointOfLocation(address, result)
  }
}

/**
 * Returns a function that throws the error it is given, but throws `job_failed` in place of a 404 or 410. The PCE keeps
 * jobs and their results for about a day (P10), so a missing job or result has expired or been deleted. A plain "not
 * found" would not explain this to the caller.
 */
function rethrowGone(path: string): (error: unknown) => never {
  return (error) => {
    if (!isGone(error)) throw error
    throw jobFailed(path, error.status, `it no longer exists (${error.status}): expired, or deleted meanwhile`)
  }
}

function isGone(error: unknown): error is PceApiError {
  return error instanceof PceApiError && (error.status === 404 || error.status === 410)
}

/**
 * Deletes a job at the PCE after the call has failed. Errors of the deletion are ignored, because the caller must see
 * the error that ended the call. `endpoint` comes from a `Location` header of the PCE, so it is checked first, to make
 * sure that nothing but a job is ever deleted.
 */
async function deleteJob(
  http: Http,
  { address }: ClientSettings,
  endpoint: string,
  { requestId, headers }: CollectionOptions,
): Promise<void> {
  const jobs = `/orgs/${address.orgId}/jobs/`
  if (!endpoint.startsWith(jobs) || !/^[^/?]+$/.test(endpoint.slice(jobs.length))) return
  const request = { requestId, headers, includeOrg: false, totalTimeoutMs: CLEAN_UP_MS, retryCount: 0 }
  await http.send('DELETE', endpoint, request).catch(() => undefined)
}

function jobFailed(path: string, status: number, why: string): PceApiError {
  const errors = [{ token: 'job_failed', message: why }]
  return new PceApiError(`the job ${path} failed: ${why}`, { status, method: 'GET', path, errors, code: 'job_failed' })
}

/** Waits `ms` milliseconds, using the client's timers. @throws {PceError} `aborted` when the signal aborts. */
export async function sleep({ timers }: ClientSettings, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    if (signal?.aborted !== true) await timers.sleep(ms, signal)
  } catch (error) {
    if (signal?.aborted !== true) throw error
  }
  if (signal?.aborted === true) throw new PceError('aborted', 'the call was cancelled', { cause: signal.reason })
}

/**
 * Returns the href of the result of a finished job or query. A job gives the href as `{href}`, a traffic query gives it
 * as a plain string.
 */
export function resultHref(result: unknown): string | undefined {
  const href = typeof result === 'object' && result !== null ? (result as { href?: unknown }).href : result
  return typeof href === 'string' && href !== '' ? href : undefined
}

/** Returns the PCE's explanation of why a job or query failed, truncated to 1000 characters. */
export function messageOf(result: unknown): string {
  const message = typeof result === 'object' && result !== null ? (result as { message?: unknown }).message : result
  return typeof message === 'string' && message !== ''
    ? JSON.stringify(message.slice(0, 1000))
    : 'the PCE gave no reason'
}
