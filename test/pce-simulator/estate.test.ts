import { createHash } from 'node:crypto'
import t from 'tap'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import type { Estate, PolicyView } from '../../pce-simulator/model.js'
import { runTrafficQuery, type TrafficState } from '../../pce-simulator/policy/run-traffic-query.js'
import { AMS, byHref, rule, ruleSet, UNFILTERED } from './tiny-estate.js'

const options = { seed: 7, workloads: 120, flows: 1500, orgId: 1 }
const digest = (estate: Estate) => createHash('sha256').update(JSON.stringify(estate)).digest('hex')
const stateOf = (estate: Estate): TrafficState => ({
  conversations: estate.conversations,
  workloads: byHref(estate.workloads),
  labels: byHref(estate.labels),
  active: { ...estate, ipLists: byHref(estate.ipLists), services: byHref(estate.services), labelGroups: new Map() },
  now: Date.parse(UNFILTERED.end_date),
})

t.test('an estate is determined by its options, byte for byte', async (t) => {
  const first = digest(generateEstate(options))
  t.equal(digest(generateEstate(options)), first)
  t.not(digest(generateEstate({ ...options, seed: 8 })), first)
  t.ok(generateEstate({ ...options, orgId: 42 }).workloads.every(({ href }) => href.startsWith('/orgs/42/')))
  t.throws(() => generateEstate({ ...options, workloads: 5 }), RangeError)
})

t.test('it has as many workloads and rows as asked for, at any size', async (t) => {
  const sizes = [
    [20, 0],
    [20, 1],
    [20, 3000],
    [97, 1],
    [400, 5000],
    [3000, 2000],
  ] as const
  for (const [workloads, flows] of sizes) {
    const estate = generateEstate({ ...options, workloads, flows })
    const result = runTrafficQuery(UNFILTERED, stateOf(estate))
    t.equal(estate.workloads.length, workloads)
    t.equal(result.flows.length, flows, `${workloads} workloads, ${flows} flows`)
    t.ok(result.matchesCount > flows || flows === 0, 'raw observations outnumber them')
    const addresses = estate.workloads.flatMap(({ interfaces }) => interfaces?.map(({ address }) => address) ?? [])
    t.equal(new Set(addresses).size, addresses.length, 'no address twice')
    t.equal(new Set(estate.workloads.map(({ hostname }) => hostname)).size, workloads, 'no hostname twice')
  }
})

t.test('it is plausible', async (t) => {
  const estate = generateEstate({ seed: 1, workloads: 400, flows: 5000, orgId: 1 })
  const values = (key: string) => estate.labels.filter((found) => found.key === key).map(({ value }) => value)
  t.ok(values('app').length >= 40)
  t.ok(values('app').includes('pay') && values('app').includes('payments'), 'names that contain one another')
  t.same(values('env').sort(), ['dev', 'prod', 'staging', 'test'])
  const count = (test: (workload: Workload) => boolean) => estate.workloads.filter(test).length
  const inMode = (mode: string) =>
    count(({ enforcement_mode, managed }) => managed === true && enforcement_mode === mode)
  const [reporting, selective, full, idle] = [
    inMode('visibility_only'),
    inMode('selective'),
    inMode('full'),
    inMode('idle'),
  ]
  t.ok(reporting > selective + full + idle && selective > idle && full > idle && idle > 0, 'mostly visibility_only')
  t.ok(count(({ managed }) => managed === false) > 10)
  t.ok(count((workload) => workload.labels?.length === 0) > 3)
  t.ok(count(({ ven }) => ven?.ven_type === 'endpoint') > 30)

  const { flows } = runTrafficQuery(UNFILTERED, stateOf(estate))
  const share = (decision: string) => flows.filter((flow) => flow.policy_decision === decision).length / flows.length
  t.ok(share('allowed') > 0.3 && share('potentially_blocked') > 0.2, 'policy covers part of it')
  t.ok(share('blocked') > 0.005 && share('unknown') > 0.001)
  t.ok(
    flows.some((flow) => flow.flow_direction === 'inbound') && flows.some((flow) => flow.flow_direction === 'outbound'),
  )
  t.ok(flows.some((flow) => flow.transmission === 'multicast') && flows.some((flow) => flow.icmp_type === 8))
  t.notOk(
    flows.some(({ src, dst }) => src.ip === dst.ip),
    'nobody talks to himself',
  )
  const processes = flows.map(({ service }) => service.process_name ?? '')
  t.ok(processes.some((path) => path.startsWith('C:\\')) && processes.some((path) => path.startsWith('/usr/')))
  t.ok(flows.some(({ service }) => service.windows_service_name === 'W3SVC'))
})

const nameOf = (bears: readonly LabelRef[] = []) => {
  const value = (key: string) => bears.find((found) => found.key === key)?.value
  return value('app') === undefined && value('env') === undefined ? 'unlabelled' : `${value('app')}|${value('env')}`
}

t.test('payments in prod has no rule set, even in the smallest estate', async (t) => {
  for (const workloads of [20, 400]) {
    const estate = generateEstate({ seed: 3, workloads, flows: workloads * 5, orgId: 1 })
    const state = stateOf(estate)
    const find = (key: string, value: string) => {
      const { href } = estate.labels.find((found) => found.key === key && found.value === value)!
      return { label: { href } }
    }
    const ours = { include: [[find('app', 'payments'), find('env', 'prod')]], exclude: [] }
    const callers = (decision: TrafficQuery['policy_decisions'][number], active: PolicyView) => {
      const query = { ...UNFILTERED, destinations: ours, policy_decisions: [decision] }
      return new Set(
        runTrafficQuery(query, { ...state, active }).flows.map(({ src }) => nameOf(src.workload?.labels ?? [])),
      )
    }
    const before = callers('potentially_blocked', state.active)
    for (const caller of ['ordering|prod', 'web-shop|prod', 'unlabelled']) {
      t.ok(before.has(caller), `${workloads} workloads: ${caller} would be cut off`)
    }

    const orderingProd = [find('app', 'ordering'), find('env', 'prod')]
    const https = {
      from: orderingProd,
      to: [AMS],
      ingress_services: [{ port: 443, proto: 6 }],
      unscoped_consumers: true,
    }
    const everything = { from: [AMS], to: [AMS], ingress_services: [{ href: estate.services[0]!.href }] }
    const added = ruleSet({ scopes: ours.include, rules: [rule(everything), rule(https)] })
    const provisioned = { ...state.active, ruleSets: [...state.active.ruleSets, added] }
    const after = callers('potentially_blocked', provisioned)
    t.notOk(after.has('ordering|prod') || after.has('payments|prod'), 'the new rules open them')
    t.ok(callers('allowed', provisioned).has('ordering|prod'))
    t.ok(after.has('web-shop|prod') && after.has('unlabelled'), 'and nothing else')

    const outward = runTrafficQuery({ ...UNFILTERED, sources: ours }, state).flows
    const partner = outward.find(({ dst }) => dst.fqdn === 'api.cardnetwork.example')
    t.ok(
      partner?.dst.ip_lists?.some(({ name }) => name === 'Partner: card network'),
      'and it calls the internet',
    )
  }
})
