import type { Test } from 'tap'
import type { TrafficQuery } from '../../../../schemas/pce/traffic.js'
import { partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const BASE = '/orgs/1/traffic_flows'
const QUERIES = `${BASE}/async_queries`
const NO_QUERY = '00000000-dead-4000-8000-000000000000'

/** A week of the organisation's traffic, with a field of every optional kind. */
const QUERY: TrafficQuery = {
  start_date: '2026-02-20T00:00:00Z',
  end_date: '2026-02-27T00:00:00Z',
  sources_destinations_query_op: 'and',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [{ transmission: 'broadcast' }] },
  services: { include: [], exclude: [{ port: 1, proto: 6 }] },
  policy_decisions: ['allowed', 'potentially_blocked', 'blocked', 'unknown'],
  exclude_workloads_from_ip_list_query: true,
  max_results: 1000,
}
/** Transmission may stand in destinations.exclude only (P25). */
const REFUSED = { ...QUERY, destinations: { include: [[{ transmission: 'unicast' }]], exclude: [] } } as TrafficQuery

/** Traffic (P11, P13, P25). */
export async function trafficOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator } = pce

  /** A finished query of another caller, and its id. */
  const finished = async (name: string) => {
    const { href } = await pce.ask<{ href: string }>('POST', QUERIES, { ...QUERY, query_name: name })
    const state = await pce.ask<Json>('GET', href)
    t.equal(state.status, 'completed', 'the ground is prepared')
    return { href, uuid: href.slice(href.lastIndexOf('/') + 1) }
  }

  await proveOperation(t, pce, 'get_traffic_flows', async (t) => {
    const path = `${BASE}/traffic_analysis_queries`
    const flows = await client.getTrafficFlows(QUERY)
    pce.wire(t, { method: 'POST', path, body: QUERY }, 'the query')
    await client.getTrafficFlows({ ...QUERY, query_name: 'Contract' } as TrafficQuery)
    pce.wire(t, { method: 'POST', path, body: QUERY }, 'without a query_name, which this endpoint refuses')
    t.ok(flows.length > 0, 'rows')
    checkResult(t, 'get_traffic_flows', flows)
    await pce.refused(t, () => client.getTrafficFlows(REFUSED), { status: 406, method: 'POST', path }, 'a bad query')
  })

  await proveOperation(t, pce, 'get_traffic_flows_async', async (t) => {
    const flows = await client.getTrafficFlowsAsync('Contract', QUERY)
    const [posted, ...later] = pce.look()
    t.strictSame(
      { line: posted?.line, query: posted?.query, body: posted?.body, status: posted?.status },
      { line: `POST ${QUERIES}`, query: {}, body: { ...QUERY, query_name: 'Contract' }, status: 202 },
    )
    const query = simulator.state.find(QUERIES) as unknown as { href: string; flows_count: number }[]
    const { href } = query.at(-1)!
    t.equal(later[0]?.line, `GET ${href}`, 'then the query is read until it is done')
    t.equal(later.filter(({ line }) => line === `GET ${href}/download`).length, 1, 'then its rows, once')
    t.ok(later.every(({ line }) => line === `GET ${href}` || line === `GET ${href}/download`))
    const synchronous = await client.getTrafficFlows(QUERY)
    t.same(flows, synchronous, 'the rows are those of the synchronous query')
    checkResult(t, 'get_traffic_flows_async', flows)
    simulator.clearRequests()
    const attempt = () => client.getTrafficFlowsAsync('Contract', REFUSED)
    await pce.refused(t, attempt, { status: 406, method: 'POST', path: QUERIES }, 'a bad query')
  })

  await proveOperation(t, pce, 'get_async_queries', async (t) => {
    const { href } = await finished('Listed')
    const queries = await client.getAsyncQueries()
    t.ok(
      pce.look().every(({ line }) => line === `GET ${QUERIES}`),
      'the list, in as many requests as it takes to have all',
    )
    const found = queries.find((query: Json) => query.href === href)
    partial(t, found, { status: 'completed', query_parameters: { query_name: 'Listed' } })
    checkResult(t, 'get_async_queries', queries)
    pce.refuseNext('GET', QUERIES, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path: QUERIES, token: 'forbidden_error' }
    await pce.refused(t, () => client.getAsyncQueries(), facts, 'forbidden')
  })

  await proveOperation(t, pce, 'delete_async_query', async (t) => {
    const { href, uuid } = await finished('Deleted')
    t.equal(await client.deleteAsyncQuery(uuid), undefined)
    pce.wire(t, { method: 'DELETE', path: href, status: 204 }, 'by its id')
    t.equal(simulator.state.find(href), undefined, 'it is gone')
    const facts = { status: 404, method: 'DELETE', path: href }
    await pce.refused(t, () => client.deleteAsyncQuery(uuid), facts, 'a query that is not there')
  })

  await proveOperation(t, pce, 'download_async_query', async (t) => {
    const { href, uuid } = await finished('Downloaded')
    const bytes = await client.downloadAsyncQuery(uuid)
    pce.wire(t, { method: 'GET', path: `${href}/download` }, 'by its id')
    t.ok(ArrayBuffer.isView(bytes), 'bytes')
    const rows = JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown[]
    t.same(rows, await client.getTrafficFlows(QUERY), 'of the rows')
    const path = `${QUERIES}/${NO_QUERY}/download`
    const attempt = () => client.downloadAsyncQuery(NO_QUERY)
    await pce.refused(t, attempt, { status: 404, method: 'GET', path }, 'a query that is not there')
  })

  await proveOperation(t, pce, 'update_async_query_rules', async (t) => {
    const { href, uuid } = await finished('With rules')
    const rows = () => pce.ask<Json[]>('GET', `${href}/download`)
    t.notOk('draft_policy_decision' in (await rows())[0]!, 'no draft decision before')
    await client.updateAsyncQueryRules(uuid, {})
    pce.wire(t, { method: 'PUT', path: `${href}/update_rules`, body: {}, status: [202, 204] }, 'an empty body')
    partial(t, await pce.ask('GET', href), { rules: 'completed' })
    t.ok((await rows())[0]!.draft_policy_decision, 'the draft decisions are there afterwards')
    const offset = { params: { label_based_rules: true, offset: 0, limit: 5 } }
    await client.updateAsyncQueryRules(uuid, {}, offset)
    t.strictSame(pce.look()[0]?.query, { label_based_rules: 'true', offset: '0', limit: '5' })
    const path = `${QUERIES}/${NO_QUERY}/update_rules`
    const attempt = () => client.updateAsyncQueryRules(NO_QUERY, {})
    await pce.refused(t, attempt, { status: 404, method: 'PUT', path }, 'a query that is not there')
  })

  await proveOperation(t, pce, 'get_traffic_flow_db_metrics', async (t) => {
    const path = `${BASE}/database_metrics`
    const metrics = await client.getTrafficFlowDbMetrics()
    pce.wire(t, { method: 'GET', path }, 'the metrics')
    partial(t, metrics, { flows_days: Number, flows_days_limit: Number, flows_size_gb: Number, updated_at: String })
    checkResult(t, 'get_traffic_flow_db_metrics', metrics)
    pce.refuseNext('GET', path, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path, token: 'forbidden_error' }
    await pce.refused(t, () => client.getTrafficFlowDbMetrics(), facts, 'forbidden')
  })
}
