import {
  MAX_TRAFFIC_ROWS,
  type AsyncTrafficQuery,
  type TrafficFlow,
  type TrafficQuery,
} from '../../schemas/pce/traffic.js'
import { messageOf, resultHref, sleep } from '../collection.js'
import { endpointOfLocation } from '../endpoint.js'
import { PceApiError, PceError } from '../errors.js'
import type { ClientSettings } from '../settings.js'
import type { Http } from '../transport.js'
import type { StreamTrafficOptions, TrafficOperations, TrafficQueryOutcome } from '../types.js'
import { downloadFlows } from './download-flows.js'
import { beginTrafficRun, type TrafficRun } from './traffic-run.js'

/** An immediate poll can see a `failed` that passes (tools A6). */
const FIRST_WAIT_MS = 1000
const WAIT_FACTOR = 1.5
const LONGEST_WAIT_MS = 10_000
/** How long a completed query may stay without its result: a known race at the PCE. */
const RESULT_GRACE_MS = 30_000
const CLEAN_UP_MS = 5000

/** The asynchronous traffic query (specification 4.3, pce-api b.4) from submission to its last row. */
export function createTrafficOperations(http: Http, settings: ClientSettings): TrafficOperations {
  async function streamTrafficFlows(queryName: string, trafficQuery: TrafficQuery, options: StreamTrafficOptions) {
    const run = beginTrafficRun(settings, options)
    let href: string | undefined
    try {
      href = await submit(http, settings, queryName, trafficQuery, run)
      const { query, result } = await pollUntilDone(http, settings, href, run)
      run.report({ phase: 'downloading', status: query.status, matchesCount: query.matches_count })
      const counts = await downloadFlows(http, endpointOfLocation(settings.address, result), run, (flows, total) =>
        deliver(options, run, query, flows, total),
      )
      const final = await readAgain(http, href, query, run)
      run.report({ phase: 'done', status: final.status, flows: counts.flows, matchesCount: final.matches_count })
      return { query: final, ...counts, matchesCount: final.matches_count ?? null } satisfies TrafficQueryOutcome
    } catch (error) {
      if (href !== undefined) await deleteQuery(http, href, options)
      throw run.explain(error)
    } finally {
      run.close()
    }
  }

  return {
    streamTrafficFlows,
    async getTrafficFlowsAsync(queryName, trafficQuery, options = {}) {
      const all: TrafficFlow[] = []
      const onFlows = (flows: TrafficFlow[]) => {
        for (const flow of flows) all.push(flow)
      }
      await streamTrafficFlows(queryName, trafficQuery, { ...options, onFlows })
      return all
    },
  }
}

/** Never repeated after a lost answer: the PCE may have started the query. */
async function submit(
  http: Http,
  settings: ClientSettings,
  queryName: string,
  trafficQuery: TrafficQuery,
  run: TrafficRun,
): Promise<string> {
  const { address } = settings
  const endpoint = `/orgs/${address.orgId}/traffic_flows/async_queries`
  const answer = await http.send('POST', endpoint, {
    ...run.request,
    headers: { ...run.request.headers, prefer: 'respond-async' },
    // The PCE requires max_results, which the specification's TrafficQuery leaves out.
    json: { query_name: queryName, ...trafficQuery, max_results: trafficQuery.max_results ?? MAX_TRAFFIC_ROWS },
  })
  const { location } = answer.headers
  const href = answer.json<Partial<AsyncTrafficQuery> | undefined>()?.href ?? location
  if (typeof href !== 'string')
    throw new PceError('invalid_response', 'the PCE accepted a traffic query without saying where it is')
  run.report({ phase: 'submitted' })
  return endpointOfLocation(address, href)
}

async function pollUntilDone(
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

async function deliver(
  options: StreamTrafficOptions,
  run: TrafficRun,
  query: AsyncTrafficQuery,
  flows: TrafficFlow[],
  total: number,
) {
  await options.onFlows(flows)
  run.report({ phase: 'downloading', status: query.status, flows: total, matchesCount: query.matches_count })
}

/** `matches_count` may be final only after the download. The rows are there, so a failure to re-read costs nothing. */
async function readAgain(
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

/** Frees the PCE of a query nobody waits for. Best effort: what went wrong before is what the caller must hear. */
async function deleteQuery(http: Http, href: string, { requestId, headers }: StreamTrafficOptions): Promise<void> {
  const options = { requestId, headers, includeOrg: false, totalTimeoutMs: CLEAN_UP_MS, retryCount: 0 }
  await http.send('DELETE', href, options).catch(() => undefined)
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
