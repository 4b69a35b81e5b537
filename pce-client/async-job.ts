import { endpointOfLocation } from './endpoint.js'
import { PceApiError, PceError } from './errors.js'
import { parseRetryAfter } from './retry-policy.js'
import type { ClientSettings } from './settings.js'
import { JsonArraySplitter } from './split-json-array.js'
import { isRecord, listOf, notObjects, type TracedResponse, type Http, type SendOptions } from './transport.js'
import type { CollectionOptions, CollectionProgress } from './types.js'

const FIRST_WAIT_MS = 1000
/** Even for a PCE that asks for less: a `Retry-After` of 0 would be thousands of requests for one job. */
const SHORTEST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
const WAIT_FACTOR = 1.5
const DEADLINE_MS = 600_000
const CLEAN_UP_MS = 5000

/** What becomes of a collection's two possible answers: the list at once, or the file that its job has written. */
export interface Reader<T> {
  direct(answer: TracedResponse): T | Promise<T>
  file(endpoint: string, request: SendOptions): Promise<T>
}

/** A job that is under way at the PCE, and what its requests have in common. */
interface Job {
  endpoint: string
  /** The PCE has given it up, or does not have it any more. */
  isLost: boolean
  /** Options of the next request: the caller's, within the time that is left. */
  request(): SendOptions
  /** @throws {PceError} when the wait would end after the time for the whole job. */
  wait(ms: number): Promise<void>
  report(phase: CollectionProgress['phase'], status?: string): void
}

/**
 * A collection through the PCE's asynchronous job (P10): `Prefer: respond-async`, poll the `Location` at the pace of `Retry-After`
 * growing by half, then fetch the result. An immediate 200 with the list is taken as it is. A job that nobody waits for any more is
 * deleted at the PCE.
 *
 * @throws {PceApiError} for a status above 399, and `job_failed` when the PCE reports the job as failed, has no such job or
 *   result any more, or does not finish it within 10 minutes.
 * @throws {PceError} `invalid_response` when a job or result lies on another server.
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
 * The objects of `getCollection`. The file is parsed while it arrives, so that its text is never held, and taken within the bounds
 * of what is collected (D74).
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

/** A collection by whichever of the two ways the PCE takes; see `getCollection`. */
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
  const { signal, requestId, totalTimeoutMs } = options
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

/** The endpoint of the finished job's result. */
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

/** Jobs and their results are kept for about a day (P10): a missing one says so instead of "not found". */
function rethrowGone(path: string): (error: unknown) => never {
  return (error) => {
    if (!isGone(error)) throw error
    throw jobFailed(path, error.status, `it no longer exists (${error.status}): expired, or deleted meanwhile`)
  }
}

function isGone(error: unknown): error is PceApiError {
  return error instanceof PceApiError && (error.status === 404 || error.status === 410)
}

/** Best effort: what went wrong before is what the caller must hear. Whatever a `Location` names, only a job is deleted. */
async function deleteJob(
  http: Http,
  { address }: ClientSettings,
  endpoint: string,
  { requestId, headers }: CollectionOptions,
): Promise<void> {
  if (!new RegExp(`^/orgs/${address.orgId}/jobs/[^/?]+$`).test(endpoint)) return
  const request = { requestId, headers, includeOrg: false, totalTimeoutMs: CLEAN_UP_MS, retryCount: 0 }
  await http.send('DELETE', endpoint, request).catch(() => undefined)
}

function jobFailed(path: string, status: number, why: string): PceApiError {
  const errors = [{ token: 'job_failed', message: why }]
  return new PceApiError(`the job ${path} failed: ${why}`, { status, method: 'GET', path, errors, code: 'job_failed' })
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
