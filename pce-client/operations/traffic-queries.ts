import type { AsyncTrafficQuery, TrafficDatabaseMetrics, TrafficFlow } from '../../schemas/pce/traffic.js'
import { MAX_SYNCHRONOUS_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { PceError } from '../errors.js'
import { listOf } from '../transport.js'
import { integerIn } from '../settings.js'
import type { RequestOptions, TrafficQuery } from '../types.js'
import { createDownload, segment, type Calls, type DownloadOptions } from './create-calls.js'
import type { TrafficOperations } from './traffic.js'

/** The queries that the PCE keeps, and the old synchronous one (S9, P11, P25). */
export interface TrafficQueryOperations {
  /**
   * Gives the flows of a query in one answer, at most 100,000 of them. A query that takes long times out at the PCE. An answer
   * too large to be held as text (32 MiB) is asked for again as `getTrafficFlowsAsync` does it, which streams.
   *
   * @deprecated since v1.0.0 of the specification: `getTrafficFlowsAsync` has no such limits.
   * @throws {PceIntegerError} for `max_results` outside 0..100000.
   */
  getTrafficFlows(trafficQuery: TrafficQuery, options?: RequestOptions): Promise<TrafficFlow[]>
  /** Lists the asynchronous queries that the PCE still has. */
  getAsyncQueries(options?: RequestOptions): Promise<AsyncTrafficQuery[]>
  /** Deletes an asynchronous query and its result; the PCE allows 10 deletions a minute. */
  deleteAsyncQuery(uuid: string, options?: RequestOptions): Promise<void>
  /**
   * Downloads the flows of a finished query, as JSON. However large: it streams, into memory, or piece by piece into
   * `options.sink`, and then answers how many bytes there were. 404 while the query is not finished.
   */
  downloadAsyncQuery(uuid: string, options: DownloadOptions): Promise<{ bytes: number }>
  downloadAsyncQuery(uuid: string, options?: RequestOptions): Promise<Uint8Array>
  /**
   * Starts to look up the rules that concern the flows of a finished query. The PCE answers at once and works on: when `rules` of
   * the query (`getAsyncQueries`) has become `completed`, another download has `rules` and `draft_policy_decision` in its flows.
   * `options.params` may have `label_based_rules`, `offset` and `limit`.
   */
  updateAsyncQueryRules(uuid: string, data?: object, options?: RequestOptions): Promise<void>
  /** Tells how many days of traffic the PCE keeps, and how much room they take. */
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
      // The synchronous query has no name, and refuses one.
      const { query_name: name, ...query } = trafficQuery as TrafficQuery & { query_name?: string }
      const rows = trafficQuery.max_results ?? MAX_SYNCHRONOUS_TRAFFIC_ROWS
      const body = { ...query, max_results: integerIn('max_results', rows, 0, MAX_SYNCHRONOUS_TRAFFIC_ROWS) }
      try {
        return listOf<TrafficFlow>(await calls.post(path, body, options), path)
      } catch (error) {
        if (!(error instanceof PceError) || error.code !== 'body_too_large') throw error
        return getTrafficFlowsAsync(name ?? 'traffic analysis', body, options)
      }
    },
    getAsyncQueries: (options) => calls.list<AsyncTrafficQuery>(`${base}/async_queries`, options),
    async deleteAsyncQuery(uuid, options) {
      await calls.delete(pathOf(uuid), options)
    },
    downloadAsyncQuery: createDownload(calls.http, (uuid: string) => `${pathOf(uuid)}/download`),
    async updateAsyncQueryRules(uuid, data = {}, options) {
      await calls.put(`${pathOf(uuid)}/update_rules`, data, options)
    },
    getTrafficFlowDbMetrics: (options) => calls.get<TrafficDatabaseMetrics>(`${base}/database_metrics`, options),
  }
}
