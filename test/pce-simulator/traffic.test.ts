import t from 'tap'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { Conversation, Endpoint, PolicyView } from '../../pce-simulator/model.js'
import {
  runTrafficQuery,
  type TrafficQueryBody,
  type TrafficState,
} from '../../pce-simulator/policy/run-traffic-query.js'
import { SMALL, SMALL_QUERY, smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'
import {
  allow,
  AMS,
  ANY,
  byHref,
  deny,
  denyAll,
  DRAFT,
  end,
  host,
  IP_LISTS,
  label,
  labels,
  rule,
  UNFILTERED,
  view,
} from './tiny-estate.js'

const DAY = 20_500
const TCP = 6
const at = (day: number, seconds = 0) => new Date((day * 86_400 + seconds) * 1000).toISOString()
const stamp = (day: number, seconds: number) => at(day, seconds).replace('.000', '')

const ordering = host('ordering-api', { at: '10.0.0.2', labels: 'app=ordering env=prod' })
const payments = host('payments-db', { at: '10.0.0.1', labels: 'app=payments env=prod' })

/** Ten connections over TCP 443 at one o'clock every day from DAY on. */
const talk = (src: Endpoint, dst: Endpoint, more: Partial<Conversation> = {}): Conversation => ({
  src,
  dst,
  service: { port: 443, proto: TCP },
  flowDirection: 'inbound',
  firstDay: DAY,
  lastDay: null,
  everyDays: 1,
  secondOfDay: 3600,
  connectionsPerDay: 10,
  bytesIn: 100,
  bytesOut: 200,
  state: 'closed',
  ...more,
})

const WINDOW = { start_date: at(DAY), end_date: at(DAY + 30) }

function ask(
  conversations: Conversation[],
  query: Partial<TrafficQueryBody> = {},
  {
    workloads = [ordering, payments],
    ...state
  }: Partial<Omit<TrafficState, 'workloads'>> & { workloads?: Workload[] } = {},
) {
  const known = { conversations, workloads: byHref(workloads), labels, active: view(), now: Date.parse(at(DAY + 365)) }
  return runTrafficQuery({ ...UNFILTERED, ...WINDOW, ...query }, { ...known, ...state })
}

t.test('a window aggregates occurrences into one row and ends at its edges or now', async (t) => {
  const daily = talk(end(ordering), end(payments))
  const week = ask([daily], { start_date: at(DAY + 1), end_date: at(DAY + 7, 7200) })
  partial(t, week.flows, [
    {
      num_connections: 70,
      dst_bi: 700,
      dst_bo: 1400,
      timestamp_range: { first_detected: stamp(DAY + 1, 3600), last_detected: stamp(DAY + 7, 3600) },
    },
  ])
  t.equal(week.matchesCount, 70, 'raw observations outnumber rows')
  const between = { start_date: at(DAY, 3601), end_date: at(DAY + 1, 3599) }
  t.same(ask([daily], between).flows, [], 'between two occurrences')
  t.equal(ask([daily], { start_date: at(DAY, 3600), end_date: at(DAY, 3600) }).flows.length, 1, 'both edges are inside')
  t.same(ask([daily], { start_date: at(DAY - 9), end_date: at(DAY - 1) }).flows, [], 'before the first day')
  t.same(ask([daily], { start_date: 'nonsense' }).flows, [])
  const connections = (conversation: Conversation, state: Parameters<typeof ask>[2] = {}) =>
    ask([conversation], {}, state).flows[0]?.num_connections
  t.equal(connections(daily, { now: Date.parse(at(DAY + 2)) }), 20, 'today has not come to its hour yet')
  t.equal(connections({ ...daily, lastDay: DAY + 2 }), 30)
  t.equal(connections({ ...daily, everyDays: 7 }), 50)

  const ended = { ...daily, lastDay: DAY + 2, state: 'timed out' as const }
  const resumed = ask([ended, { ...daily, firstDay: DAY + 10 }]).flows
  partial(t, resumed, [{ num_connections: 230, state: 'closed' }], 'the same ends and service are one row')
  t.equal(resumed.length, 1)
  t.equal(ask([daily, { ...daily, flowDirection: 'outbound' }]).flows.length, 2, 'what both ends report is two')
  const renamed = { ...daily, service: { ...daily.service, process_name: '/usr/bin/x' } }
  t.equal(ask([daily, renamed]).flows.length, 2, 'and so is another process')
})

t.test('filters', async (t) => {
  const postgres = { port: 5432, proto: TCP, process_name: '/usr/lib/postgresql/16/bin/postgres' }
  const all = [
    talk(end(ordering), end(payments), { service: postgres }),
    talk(end(payments), { ip: '203.0.113.1', fqdn: 'api.partner.example' }, { flowDirection: 'outbound' }),
    talk({ ip: '10.60.1.1' }, end(payments), { service: { port: 8080, proto: TCP, windows_service_name: 'W3SVC' } }),
    talk(
      end(ordering),
      { ip: '10.255.255.255' },
      { flowDirection: 'outbound', transmission: 'broadcast', service: { port: 137, proto: 17 } },
    ),
    talk({ ip: '10.9.9.9' }, { ip: '10.9.9.8' }),
  ]
  const ipLists = new Map(IP_LISTS.map((list) => [list.href.replace('draft', 'active'), list]))
  const active: PolicyView = { ...view(), ipLists }
  const seen = (query: Partial<TrafficQueryBody>) =>
    ask(all, query, { active }).flows.map(({ src, dst, service }) =>
      all.findIndex((row) => row.src.ip === src.ip && row.dst.ip === dst.ip && row.service.port === service.port),
    )
  type Side = TrafficQuery['sources']
  const include = (...blocks: Side['include']): Side => ({ include: blocks, exclude: [] })
  const exclude = (...selectors: Side['exclude']): Side => ({ include: [], exclude: selectors })
  const bears = (text: string) => ({ label: { href: label(text).href } })
  const list = (id: number) => ({ ip_list: { href: `/orgs/1/sec_policy/draft/ip_lists/${id}` } })
  const services = (...filters: TrafficQuery['services']['include']) => ({
    services: { include: filters, exclude: [] },
  })

  t.same(seen({}), [0, 1, 2, 3, 4], 'none')
  t.same(seen({ sources: include(), destinations: include([]) }), [0, 1, 2, 3, 4], 'an empty include is anything')
  t.same(seen({ destinations: include([bears('app=payments'), bears('env=prod')]) }), [0, 2], 'a block ANDs')
  t.same(seen({ destinations: include([bears('app=payments'), bears('env=dev')]) }), [])
  t.same(seen({ sources: include([bears('app=payments')], [bears('app=ordering')]) }), [0, 1, 3], 'blocks OR')
  t.same(seen({ sources: exclude(bears('app=payments'), bears('app=ordering')) }), [2, 4], 'any exclude excludes')
  t.same(seen({ destinations: exclude(bears('app=payments')) }), [1, 3, 4])
  t.same(seen({ sources: include([{ label_group: { href: `${DRAFT}/label_groups/nonprod` } }]) }), [])
  t.same(seen({ sources: include([{ workload: { href: ordering.href } }]) }), [0, 3])
  t.same(seen({ sources: include([{ actors: 'ams' }]), destinations: include([{ actors: 'ams' }]) }), [0])
  t.same(seen({ sources: include([{ ip_address: '10.60.1.1' }]) }), [2])
  t.same(seen({ sources: include([list(2)]) }), [2], 'a list named by its draft href is the active one')
  t.same(seen({ destinations: include([list(1)]) }), [1, 3, 4], 'an IP list leaves workloads out')
  const unlessTold = { destinations: include([list(1)]), exclude_workloads_from_ip_list_query: false }
  t.same(seen(unlessTold), [0, 1, 2, 3, 4], 'unless told otherwise')
  t.same(seen({ destinations: include([{ fqdn: 'API.partner.example' }]) }), [1])
  t.same(seen({ destinations: exclude({ transmission: 'broadcast' }) }), [0, 1, 2, 4])
  t.same(seen({ destinations: exclude({ transmission: 'unicast' }) }), [3], 'what says nothing is unicast')
  const ours = { sources: include([bears('app=payments')]), destinations: include([bears('app=payments')]) }
  t.same(seen(ours), [])
  t.same(seen({ ...ours, sources_destinations_query_op: 'or' }), [0, 1, 2])
  t.same(seen(services({ port: 8000, to_port: 8099, proto: TCP }, { proto: 17 })), [2, 3], 'services OR')
  t.same(seen(services({ process_name: 'Postgres' })), [0], 'part of a path will do')
  t.same(seen(services({ windows_service_name: 'w3svc' })), [2])
  t.same(seen(services({ port: 443, proto: 17 })), [], 'the fields of one AND')
  t.same(seen({ services: { include: [], exclude: [{ port: 443 }] } }), [0, 2, 3])
  t.same(seen({ policy_decisions: ['unknown'] }), [4])
  t.same(seen({ policy_decisions: ['potentially_blocked'] }), [0, 1, 2, 3])
  t.same(seen({ data_sources: { include: ['flowlink'], exclude: [] } }), [4], 'where no VEN runs, the network reports')

  const cut = ask(all, { max_results: 2 })
  t.equal(cut.flows.length, 2)
  t.equal(cut.matchesCount, ask(all).matchesCount, 'raw matches are counted all the same')
})

t.test('rows show their ends as the PCE knows them today', async (t) => {
  const conversation = talk({ ip: '10.60.1.1' }, end(payments))
  const blocking = denyAll(deny({ from: [ANY], to: [AMS] }))
  const selective: Workload = { ...payments, enforcement_mode: 'selective' }
  const row = ask([conversation], {}, { workloads: [selective], active: blocking }).flows[0]!
  partial(t, row, { policy_decision: 'blocked', boundary_decision: 'blocked', flow_direction: 'inbound' })
  const lists = ['/orgs/1/sec_policy/draft/ip_lists/1', '/orgs/1/sec_policy/draft/ip_lists/2']
  t.same(
    row.src.ip_lists?.map(({ href }) => href),
    lists,
  )
  t.notOk(row.src.workload)
  t.notOk(row.dst.ip_lists, 'a workload has none')
  partial(t, row.dst.workload, {
    hostname: 'payments-db',
    managed: true,
    os_type: 'linux',
    enforcement_mode: 'selective',
  })
  t.same(row.dst.workload?.labels?.[0], { href: label('app=payments').href, key: 'app', value: 'payments' })
  t.notOk('draft_policy_decision' in row || 'rules' in row, 'what update_rules adds is absent before')
  const inbound = rule({ from: [ANY], to: [AMS] })
  const drafted = ask([conversation], {}, { draft: allow(inbound) }).flows[0]
  partial(t, drafted, {
    policy_decision: 'potentially_blocked',
    draft_policy_decision: 'allowed',
    rules: [{ href: inbound.href }],
  })

  const idle: Workload = { ...payments, enforcement_mode: 'idle' }
  const silent = ask([conversation], { boundary_decisions: ['blocked'] }, { workloads: [idle], active: blocking })
  t.same(silent.flows, [], 'an idle end blocks at no boundary')
  const registered = host('branch-pc', { at: '10.60.1.1', managed: false })
  const since = ask([conversation], {}, { workloads: [payments, registered] }).flows[0]
  partial(t, since?.src.workload, { hostname: 'branch-pc', managed: false }, 'an address somebody registered since')
  const gone = ask([conversation], {}, { workloads: [{ ...payments, deleted: true }] }).flows[0]
  partial(
    t,
    gone,
    { dst: { ip: '10.0.0.1', workload: undefined }, policy_decision: 'unknown' },
    'a workload deleted since',
  )

  const ping = talk(end(ordering), end(payments), { service: { proto: 1 }, icmpType: 8, icmpCode: 0 })
  const pings = ask([ping, { ...ping, icmpType: 0 }]).flows
  partial(t, pings, [{ service: { port: 0 }, icmp_type: 8 }, { icmp_type: 0 }])
})

const QUERIES = '/traffic_flows/async_queries'
const refusal = ({ status, body }: { status: number; body?: { token: string }[] }) => `${status} ${body?.[0]?.token}`
const MALFORMED = '406 input_validation_error'
const DANGLING = '406 invalid_uri'
const selecting = (side: 'sources' | 'destinations', selector: object, list: 'include' | 'exclude' = 'include') => ({
  ...SMALL_QUERY,
  [side]: { include: [], exclude: [], [list]: list === 'include' ? [[selector]] : [selector] },
})

t.test('what a query may contain', async (t) => {
  const { org } = await startPce(t)
  const group = await org('POST', '/sec_policy/draft/label_groups', {
    name: 'Live',
    key: 'env',
    labels: [{ href: SMALL.prod }],
  })
  const outer = await org('POST', '/sec_policy/draft/label_groups', {
    name: 'Outer',
    key: 'env',
    sub_groups: [{ href: group.body.href }],
  })
  const rows = async (query: object): Promise<number | string> => {
    const asked = await org('POST', QUERIES, query)
    if (asked.status !== 202) return refusal(asked)
    for (let poll = 0; poll < 3; poll += 1) await org('GET', asked.body.href)
    return (await org('GET', `${asked.body.href}/download`)).body.length
  }
  t.equal(await rows(selecting('sources', { label_group: { href: outer.body.href } })), DANGLING, 'never provisioned')
  await org('POST', '/sec_policy', { update_description: 'groups' })
  const active = (href: string) => href.replace('draft', 'active')

  const cases: [string, object, number | string][] = [
    ['a group of groups', selecting('sources', { label_group: { href: active(outer.body.href) } }), 1],
    ['its draft href', selecting('sources', { label_group: { href: outer.body.href } }), 1],
    ['a group excluded', selecting('destinations', { label_group: { href: outer.body.href } }, 'exclude'), 0],
    ['a label', selecting('sources', { label: { href: SMALL.dev } }), 0],
    ['no such label', selecting('sources', { label: { href: '/orgs/1/labels/99' } }), DANGLING],
    ['no such workload', selecting('sources', { workload: { href: '/orgs/1/workloads/x' } }), DANGLING],
    ['no such list', selecting('sources', { ip_list: { href: '/orgs/1/sec_policy/active/ip_lists/99' } }), DANGLING],
    ['an address', selecting('sources', { ip_address: '10.2.0.1' }), 1],
    ['a network', selecting('sources', { ip_address: '10.2.0.0/16' }), '406 invalid_ip_address'],
    ['an address as an object', selecting('sources', { ip_address: { value: '10.2.0.1' } }), MALFORMED],
    ['all workloads', selecting('sources', { actors: 'ams' }), 1],
    ['all workloads excluded', selecting('sources', { actors: 'ams' }, 'exclude'), MALFORMED],
    ['a name', selecting('destinations', { fqdn: 'www.example.com' }), 0],
    ['a name excluded', selecting('destinations', { fqdn: 'www.example.com' }, 'exclude'), 1],
    ['a name as a source', selecting('sources', { fqdn: 'www.example.com' }), MALFORMED],
    ['unicast excluded', selecting('destinations', { transmission: 'unicast' }, 'exclude'), 0],
    ['multicast excluded', selecting('destinations', { transmission: 'multicast' }, 'exclude'), 1],
    ['unicast included', selecting('destinations', { transmission: 'unicast' }), MALFORMED],
    ['unicast as a source', selecting('sources', { transmission: 'unicast' }, 'exclude'), MALFORMED],
    ['a cloud resource', selecting('sources', { cloud_resource: { resource_uuid: 'x' } }), 0],
    ['a cloud resource excluded', selecting('sources', { cloud_resource: { resource_uuid: 'x' } }, 'exclude'), 1],
    ['a data center', selecting('destinations', { data_center: { type: 'aws' } }), 0],
    ['no such data center', selecting('destinations', { data_center: { type: 'moon' } }), MALFORMED],
    ['a flat include', { ...SMALL_QUERY, sources: { include: [{ actors: 'ams' }], exclude: [] } }, MALFORMED],
    ['boundaries', { ...SMALL_QUERY, boundary_decisions: ['blocked_by_override_deny', 'blocked_non_illumio_rule'] }, 0],
    ['no such boundary', { ...SMALL_QUERY, boundary_decisions: ['allowed'] }, MALFORMED],
    ['servers', { ...SMALL_QUERY, data_sources: { include: ['server'] } }, 1],
    ['scanners', { ...SMALL_QUERY, data_sources: { include: ['scanner', 'flowlink'] } }, 0],
    ['all but servers', { ...SMALL_QUERY, data_sources: { exclude: ['server'] } }, 0],
    ['97 days', { ...SMALL_QUERY, start_date: '2025-11-22T00:00:00Z' }, 1],
    ['98 days', { ...SMALL_QUERY, start_date: '2025-11-21T00:00:00Z' }, MALFORMED],
    ['backwards', { ...SMALL_QUERY, start_date: '2026-02-28T00:00:00Z' }, MALFORMED],
    ['no zone', { ...SMALL_QUERY, start_date: '2026-02-20T00:00:00' }, MALFORMED],
    ['no dates', { ...SMALL_QUERY, start_date: undefined, end_date: undefined }, 1],
    ['no name', { ...SMALL_QUERY, query_name: undefined }, MALFORMED],
    ['no decisions', { ...SMALL_QUERY, policy_decisions: undefined }, MALFORMED],
    ['too many rows', { ...SMALL_QUERY, max_results: 200_001 }, MALFORMED],
    ['no rows', { ...SMALL_QUERY, max_results: 0 }, 0],
    ['a field too many', { ...SMALL_QUERY, group_by: 'app' }, MALFORMED],
  ]
  for (const [what, query, expected] of cases) t.equal(await rows(query), expected, what)
})

t.test('the synchronous form answers at once, to a query without a name', async (t) => {
  const { org } = await startPce(t)
  const ask = (query: object) => org('POST', '/traffic_flows/traffic_analysis_queries', query)
  const { query_name: _name, ...nameless } = SMALL_QUERY
  const answer = await ask({ ...nameless, max_results: 100_000 })
  t.equal(answer.status, 200)
  partial(t, answer.body, [{ num_connections: 70, policy_decision: 'potentially_blocked', caps: [] }])
  t.notOk('draft_policy_decision' in answer.body[0])
  t.equal(refusal(await ask(SMALL_QUERY)), MALFORMED, 'it takes no name')
  t.equal(refusal(await ask({ ...nameless, max_results: 100_001 })), MALFORMED)
  t.equal(refusal(await ask({ ...nameless, start_date: '2026-02-20' })), MALFORMED)
  const gone = { include: [[{ label: { href: '/orgs/1/labels/99' } }]], exclude: [] }
  t.equal(refusal(await ask({ ...nameless, sources: gone })), DANGLING)
  t.equal((await org('GET', '/traffic_flows/traffic_analysis_queries')).status, 405)
  t.same((await org('GET', QUERIES)).body, [], 'it is on no list')
})

t.test('a query is watched, cancelled, listed, deleted; it fails, hangs or expires on demand', async (t) => {
  const { simulator, org } = await startPce(t)
  const ask = async () => (await org('POST', QUERIES, SMALL_QUERY)).body.href as string
  const follow = async (href: string, polls: number) => {
    const statuses = []
    for (let poll = 0; poll < polls; poll += 1) statuses.push((await org('GET', href)).body.status)
    return statuses
  }
  const first = await ask()
  t.equal((await org('GET', `${first}/download`)).status, 404)
  t.equal((await org('PUT', `${first}/update_rules`, {})).status, 406, 'nothing to add rules to')
  t.same(await follow(first, 4), ['queued', 'working', 'completed', 'completed'])
  const done = (await org('GET', first)).body
  partial(t, done, { result: `${first}/download`, matches_count: 70, flows_count: 1, query_parameters: SMALL_QUERY })
  partial(t, done.regions, [{ responded: true, flows_count: 1 }])

  const cancelled = await ask()
  t.equal(refusal(await org('PUT', cancelled, { status: 'cancelled' })), MALFORMED)
  t.equal((await org('PUT', cancelled, { status: 'cancel_requested' })).status, 204)
  t.same(await follow(cancelled, 3), ['cancelled', 'cancelled', 'cancelled'])
  t.equal((await org('GET', `${cancelled}/download`)).status, 404)
  t.equal((await org('PUT', first, { status: 'cancel_requested' })).status, 204)
  t.same(await follow(first, 1), ['completed'], 'what has ended stays as it ended')

  for (const [kind, status] of [
    ['job-failed', 'failed'],
    ['job-stuck', 'working'],
    ['job-expired', 'completed'],
  ] as const) {
    simulator.faults.add({ kind, path: `/orgs/1${QUERIES}`, method: 'POST', times: 1 })
    const fated = await ask()
    t.equal((await follow(fated, 6)).at(-1), status)
    t.equal((await org('GET', `${fated}/download`)).status, 404, kind)
    t.equal('result' in (await org('GET', fated)).body, status === 'completed')
  }

  const list = await org('GET', `${QUERIES}?max_results=2`)
  t.same([list.body.length, list.headers.get('x-total-count')], [2, '5'])
  t.equal((await org('DELETE', cancelled)).status, 204)
  t.equal((await org('DELETE', cancelled)).status, 404)
  t.equal((await org('GET', QUERIES)).body.length, 4)
  t.same((await org('GET', '/events')).body, [], 'a question is no write')
})

t.test('update_rules adds what the draft would decide, to all rows or to some', async (t) => {
  const [pattern] = smallEstate().conversations
  const conversations = [5432, 5433, 5434].map((port) => ({ ...pattern!, service: { port, proto: TCP } }))
  const { simulator, org } = await startPce(t, { estate: { ...smallEstate(), conversations }, pollsUntilDone: 2 })
  const { href } = (await org('POST', QUERIES, SMALL_QUERY)).body
  const settle = async () => {
    for (let poll = 0; poll < 4; poll += 1) await org('GET', href)
    return (await org('GET', href)).body.rules
  }
  const drafted = async () =>
    (await org('GET', `${href}/download`)).body
      .map((flow: object) => ('draft_policy_decision' in flow ? 1 : 0))
      .join('')
  t.equal(await settle(), undefined)
  t.equal(await drafted(), '000')
  const update = (query: string) => org('PUT', `${href}/update_rules${query}`, {})
  t.equal((await update('?label_based_rules=true&offset=1&limit=1')).status, 202)
  t.equal((await org('GET', href)).body.rules, 'working')
  t.equal(await drafted(), '000', 'not yet')
  t.equal(await settle(), 'completed')
  t.equal(await drafted(), '010')
  await update('?offset=2')
  await settle()
  t.equal(await drafted(), '001')
  await update('')
  await settle()
  t.equal(await drafted(), '111')
  for (const query of ['?offset=-1', '?limit=all', '?label_based_rules=maybe']) {
    t.equal(refusal(await update(query)), MALFORMED, query)
  }
  simulator.faults.add({ kind: 'job-stuck', path: `${href}/update_rules`, times: 1 })
  await update('')
  t.equal(await settle(), 'working')
  t.equal(await drafted(), '000')
})

t.test('the traffic database covers its retention period', async (t) => {
  const today = START_OF_TEST / 86_400_000
  const [pattern] = smallEstate().conversations
  const since = (days: number, more: Partial<Conversation> = {}) => ({
    ...pattern!,
    firstDay: Math.floor(today) - days + 1,
    ...more,
  })
  const metrics = async (...conversations: Conversation[]) => {
    const estate = smallEstate()
    const [db, web, ...others] = estate.workloads
    const laptop = { ...web!, ven: { ...web!.ven!, ven_type: 'endpoint' as const } }
    const { org } = await startPce(t, { estate: { ...estate, workloads: [db!, laptop, ...others], conversations } })
    return (await org('GET', '/traffic_flows/database_metrics')).body
  }
  const week = await metrics(since(7))
  partial(t, week, {
    flows_days: 7,
    flows_days_limit: 97,
    flows_oldest_day: '2026-02-23',
    server: { num_flows_days: 7, num_daily_tables: 7, num_weekly_tables: 1 },
    endpoint: { num_flows_days: 0 },
    updated_at: '2026-03-01T12:00:00.000Z',
  })
  t.ok(week.flows_size_gb > 0)
  t.equal((await metrics(since(14))).flows_size_gb / 2, week.flows_size_gb, 'twice the days are twice the size')
  partial(t, await metrics(since(200)), { flows_days: 97, flows_oldest_day: '2025-11-25' }, 'older days are gone')
  partial(t, await metrics(since(200, { lastDay: Math.floor(today) - 150 })), { flows_days: 0, flows_size_gb: 0 })
  partial(t, await metrics(since(7), since(9, { flowDirection: 'outbound' })), {
    flows_days: 9,
    server: { num_flows_days: 7 },
    endpoint: { num_flows_days: 9 },
  })
})
