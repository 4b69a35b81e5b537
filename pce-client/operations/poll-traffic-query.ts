import type { AsyncTrafficQuery } from '../../schemas/pce/traffic.js'
import { PceApiError, PceError } from '../errors.js'
import { messageOf, resultHref, sleep } from '../read-job.js'
import type { ClientSettings } from '../settings.js'
import type { Http } from '../transport.js'
import type { TrafficRun } from './traffic-run.js'

/** An immediate poll can see a `failed` that passes (T6). */
const FIRST_WAIT_MS = 1000
const WAIT_FACTOR = 1.5
const LONGEST_WAIT_MS = 10_000
/** How long a completed query may stay without its result: a known race at the PCE. */
const RESULT_GRACE_MS = 30_000

/** Asks for a submitted query until it is done, less and less often. @throws {PceApiError} `traffic_query_failed`. */
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
    const query = answer.json<AsyncTrafficQuery | undefined>()
    if (query === undefined) throw new PceError('invalid_response', `GET ${href}: the PCE answered without the query`)
    run.report({ phase: 'polling', status: query.status, matchesCount: query.matches_count })

    if (query.status === 'failed') throw queryFailed(href, answer.status, messageOf(query.result))
    if (query.status === 'cancelled' || query.status === 'canceled') {
      throw queryFailed(href, answer.status, 'it was cancelled at the PCE')
    }
    if (query.status !== 'completed' && query.status !== 'done') continue
    const result = resultHref(query.result)
    if (result !== undefined) return { query, result }
    completedAt ??= timers.now()
    if (timers.now() - completedAt > RESULT_GRACE_MS)
      throw queryFailed(href, answer.status, 'it completed without a result')
  }
}

/** `matches_count` may be final only after the download. The rows are there, so a failure to re-read costs nothing. */
export async function readAgain(
  http: Http,
  href: string,
  query: AsyncTrafficQuery,
  run: TrafficRun,
): Promise<AsyncTrafficQuery> {
  try {
    const again = (await http.send('GET', href, run.request)).json<AsyncTrafficQuery | undefined>()
    return again ?? query
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
