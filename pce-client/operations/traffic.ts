import type { AsyncTrafficQuery, TrafficDatabaseMetrics, TrafficFlow } from '../../schemas/pce/traffic.js'
import { MAX_SYNCHRONOUS_TRAFFIC_ROWS, MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { endpointOfLocation } from '../endpoint.js'
import { PceError } from '../errors.js'
import { integerIn, type ClientSettings } from '../settings.js'
import { listOf, type Http } from '../transport.js'
import type { RequestOptions, StreamTrafficOptions, TrafficQuery, TrafficQueryOutcome } from '../types.js'
import { type DownloadOptions, type Calls, segment, createDownload } from './create-calls.js'
import {
  addDraftDecisions,
  downloadFlows,
  pollUntilDone,
  readAgain,
  beginTrafficRun,
  type TrafficRun,
} from './run-traffic-query.js'

const CLEAN_UP_MS = 5000

/** Operations that run an asynchronous traffic query, from its submission to its last row (S9, P11). */
export interface TrafficOperations {
  /**
   * Submits a query, waits until it is done, and returns its flows. Without `max_results`, it asks for 200,000 flows,
   * the most that the PCE returns.
   *
   * @throws {PceApiError} `traffic_query_failed` when the PCE reports that the query failed.
   * @throws {PceError} `traffic_query_timeout` when it is not done within `options.deadlineSeconds` (600).
   */
  getTrafficFlowsAsync(
    queryName: string,
    trafficQuery: TrafficQuery,
    options?: Omit<StreamTrafficOptions, 'onFlows'>,
  ): Promise<TrafficFlow[]>
  /**
   * Like `getTrafficFlowsAsync`, but passes the rows on as they arrive, so that the complete result is never held in
   * memory.
   */
  streamTrafficFlows(
    queryName: string,
    trafficQuery: TrafficQuery,
    options: StreamTrafficOptions,
  ): Promise<TrafficQueryOutcome>
}

export function createTrafficOperations(http: Http, settings: ClientSettings): TrafficOperations {
  async function streamFlows(
    queryName: string,
    asked: TrafficQuery,
    options: StreamTrafficOptions,
    bytes?: number,
  ): Promise<TrafficQueryOutcome> {
    // The PCE requires `max_results`, although it is not part of the specification's TrafficQuery.
    const trafficQuery = { ...asked, max_results: asked.max_results ?? MAX_TRAFFIC_ROWS }
    const bounds = { rows: trafficQuery.max_results, bytes }
    const run = beginTrafficRun(settings, options)
    let href: string | undefined
    try {
      href = await submit(http, settings, queryName, trafficQuery, run)
      const { query, result } = await pollUntilDone(http, settings, href, run)
      if (options.skipFull === true && (query.flows_count ?? 0) >= bounds.rows) {
        run.report({ phase: 'done', status: query.status, matchesCount: query.matches_count })
        return { query, flows: 0, unparseable: 0, matchesCount: query.matches_count ?? null, skipped: true }
      }
      const draft = options.draftDecisions === true ? await addDraftDecisions(http, settings, href, run) : undefined
      run.report({ phase: 'downloading', status: query.status, matchesCount: query.matches_count })
      const endpoint = endpointOfLocation(settings.address, result)
      const counts = await downloadFlows(http, endpoint, run, bounds, (flows, total) =>
        deliver(options, run, query, flows, total),
      )
      const final = await readAgain(http, href, query, run)
      run.report({ phase: 'done', status: final.status, flows: counts.flows, matchesCount: final.matches_count })
      const outcome: TrafficQueryOutcome = { query: final, ...counts, matchesCount: final.matches_count ?? null }
      return draft === undefined ? outcome : { ...outcome, draftUnavailable: draft }
    } catch (error) {
      if (href !== undefined) await deleteQuery(http, href, options)
      throw run.explain(error)
    } finally {
      run.close()
    }
  }

  return {
    streamTrafficFlows: (queryName, trafficQuery, options) => streamFlows(queryName, trafficQuery, options),
    async getTrafficFlowsAsync(queryName, trafficQuery, options = {}) {
      const all: TrafficFlow[] = []
      const onFlows = (flows: TrafficFlow[]) => {
        for (const flow of flows) all.push(flow)
      }
      const { unparseable } = await streamFlows(
        queryName,
        trafficQuery,
        { ...options, onFlows },
        settings.bounds.collected.bytes,
      )
      if (all.length > 0 || unparseable === 0) return all
      throw new PceError('invalid_response', `none of the ${unparseable} rows that the PCE answered is a flow`)
    },
  }
}

/** Submits the query. The request is not repeated after a lost answer, because the PCE may have started the query. */
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
    json: { query_name: queryName, ...trafficQuery },
  })
  const { location } = answer.headers
  const href = answer.json<Partial<AsyncTrafficQuery> | null | undefined>()?.href ?? location
  if (typeof href !== 'string')
    throw new PceError('invalid_response', 'the PCE accepted a traffic query without telling its address')
  run.report({ phase: 'submitted' })
  return endpointOfLocation(address, href)
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

/**
 * Deletes a query at the PCE after the call has failed. Errors of the deletion are ignored, because the caller must see
 * the error that ended the call.
 */
async function deleteQuery(http: Http, href: string, { requestId, headers }: StreamTrafficOptions): Promise<void> {
  const options = { requestId, headers, includeOrg: false, totalTimeoutMs: CLEAN_UP_MS, retryCount: 0 }
  await http.send('DELETE', href, options).catch(() => undefined)
}

/** Operations on the traffic queries that the PCE keeps, and the older synchronous traffic query (S9, P11, P25). */
export interface TrafficQueryOperations {
  /**
   * Returns the flows of a query in one answer, at most 100,000 of them. A long-running query times out at the PCE. If
   * the answer is too large to be held as text, the query is repeated through `getTrafficFlowsAsync`, which streams.
   *
   * @deprecated since v1.0.0 of the specification: `getTrafficFlowsAsync` has no such limits.
   * @throws {PceIntegerError} for `max_results` outside 0..100000.
   */
  getTrafficFlows(trafficQuery: TrafficQuery, options?: RequestOptions): Promise<TrafficFlow[]>
  /** Lists the asynchronous queries that the PCE still keeps. */
  getAsyncQueries(options?: RequestOptions): Promise<AsyncTrafficQuery[]>
  /** Deletes an asynchronous query and its result; the PCE allows 10 deletions a minute. */
  deleteAsyncQuery(uuid: string, options?: RequestOptions): Promise<void>
  /**
   * Downloads the flows of a finished query as JSON. Returns the bytes, or passes them on piece by piece to
   * `options.sink` and returns their number. Fails with 404 while the query is not finished.
   */
  downloadAsyncQuery(uuid: string, options: DownloadOptions): Promise<{ bytes: number }>
  downloadAsyncQuery(uuid: string, options?: RequestOptions): Promise<Uint8Array>
  /**
   * Starts looking up the rules that apply to the flows of a finished query. The PCE answers at once and continues in
   * the background: when the field `rules` of the query (see `getAsyncQueries`) is `completed`, the flows of a new
   * download have `rules` and `draft_policy_decision`. `options.params` may have `label_based_rules`, `offset` and
   * `limit`.
   */
  updateAsyncQueryRules(uuid: string, data?: object, options?: RequestOptions): Promise<void>
  /** Reports how many days of traffic the PCE keeps, and how much space they take. */
  getTrafficFlowDbMetrics(options?: RequestOptions): Promise<TrafficDatabaseMetrics>
}

export function createTrafficQueryOperations(
  calls: Calls,
  { getTrafficFlowsAsync }: Pick<TrafficOperations, 'getTrafficFlowsAsync'>,
): TrafficQueryOperations {
  const base = `${calls.org}/traffic_flows`
  const pathOf = (uuid: string) => `${base}/async_queries/${segment('uuid', uuid)}`
  return {
    async getTrafficFlows(trafficQuery, options) {
      const path = `${base}/traffic_analysis_queries`
      // The PCE refuses a synchronous query that has a name.
      const { query_name: name, ...query } = trafficQuery as TrafficQuery & { query_name?: string }
      const rows = trafficQuery.max_results ?? MAX_SYNCHRONOUS_TRAFFIC_ROWS
      const body = { ...query, max_results: integerIn('max_results', rows, 0, MAX_SYNCHRONOUS_TRAFFIC_ROWS) }
      try {
        return await listOf<TrafficFlow>(await calls.post(path, body, options), path)
      } catch (error) {
        if (!(error instanceof PceError) || error.code !== 'body_too_large') throw error
        return getTrafficFlowsAsync(name ?? 'traffic analysis', body, options)
      }
    },
    getAsyncQueries: (options) => calls.list<AsyncTrafficQuery>(`${base}/async_queries`, options),
    async deleteAsyncQuery(uuid, options) {
      await calls.delete(pathOf(uuid), options)
    },
    // `application/json` is sent as the Accept header; without it, the PCE would answer with CSV (P71).
    downloadAsyncQuery: createDownload(calls, (uuid: string) => `${pathOf(uuid)}/download`, 'application/json'),
    async updateAsyncQueryRules(uuid, data = {}, options) {
      await calls.put(`${pathOf(uuid)}/update_rules`, data, options)
    },
    getTrafficFlowDbMetrics: (options) => calls.get<TrafficDatabaseMetrics>(`${base}/database_metrics`, options),
  }
}
