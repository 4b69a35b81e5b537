import t from 'tap'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { Conversation, Endpoint, PolicyView } from '../pce-simulator/model.js'
import { runTrafficQuery, type TrafficQueryBody, type TrafficState } from '../pce-simulator/policy/run-traffic-query.js'
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

t.test('a window folds occurrences into one row, and never looks past its edges or now', async (t) => {
  const daily = talk(end(ordering), end(payments))
  const week = ask([daily], { start_date: at(DAY + 1), end_date: at(DAY + 7, 7200) })
  t.match(week.flows, [
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
  t.match(resumed, [{ num_connections: 230, state: 'closed' }], 'the same ends and service are one row')
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

t.test('a row shows its ends as the PCE knows them today', async (t) => {
  const conversation = talk({ ip: '10.60.1.1' }, end(payments))
  const blocking = denyAll(deny({ from: [ANY], to: [AMS] }))
  const selective: Workload = { ...payments, enforcement_mode: 'selective' }
  const row = ask([conversation], {}, { workloads: [selective], active: blocking }).flows[0]!
  t.match(row, { policy_decision: 'blocked', boundary_decision: 'blocked', flow_direction: 'inbound' })
  const lists = ['/orgs/1/sec_policy/active/ip_lists/1', '/orgs/1/sec_policy/active/ip_lists/2']
  t.same(
    row.src.ip_lists?.map(({ href }) => href),
    lists,
  )
  t.notOk(row.src.workload)
  t.notOk(row.dst.ip_lists, 'a workload has none')
  t.match(row.dst.workload, { hostname: 'payments-db', managed: true, os_type: 'linux', enforcement_mode: 'selective' })
  t.same(row.dst.workload?.labels?.[0], { href: label('app=payments').href, key: 'app', value: 'payments' })
  t.notOk('draft_policy_decision' in row || 'rules' in row, 'what update_rules adds is absent before')
  const inbound = rule({ from: [ANY], to: [AMS] })
  const drafted = ask([conversation], {}, { draft: allow(inbound) }).flows[0]
  t.match(drafted, {
    policy_decision: 'potentially_blocked',
    draft_policy_decision: 'allowed',
    rules: [{ href: inbound.href }],
  })

  const idle: Workload = { ...payments, enforcement_mode: 'idle' }
  const silent = ask([conversation], { boundary_decisions: ['blocked'] }, { workloads: [idle], active: blocking })
  t.same(silent.flows, [], 'an idle end blocks at no boundary')
  const registered = host('branch-pc', { at: '10.60.1.1', managed: false })
  const since = ask([conversation], {}, { workloads: [payments, registered] }).flows[0]
  t.match(since?.src.workload, { hostname: 'branch-pc', managed: false }, 'an address somebody registered since')
  const gone = ask([conversation], {}, { workloads: [{ ...payments, deleted: true }] }).flows[0]
  t.match(
    gone,
    { dst: { ip: '10.0.0.1', workload: undefined }, policy_decision: 'unknown' },
    'a workload deleted since',
  )

  const ping = talk(end(ordering), end(payments), { service: { proto: 1 }, icmpType: 8, icmpCode: 0 })
  const pings = ask([ping, { ...ping, icmpType: 0 }]).flows
  t.match(pings, [{ service: { port: 0 }, icmp_type: 8 }, { icmp_type: 0 }])
})
