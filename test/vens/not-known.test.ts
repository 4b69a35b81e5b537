/** get-vens and ven-health-report where the PCE's lists of VENs and of workloads leave something out. */
import t, { type Test } from 'tap'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`
const VENS = '/orgs/1/vens'
const WORKLOADS = '/orgs/1/workloads'
const HEARD = '2026-06-15T11:58:00.000Z'

const ven = (n: number, more: object = {}) => ({
  href: `${VENS}/${id(n)}`,
  name: null,
  hostname: `host-${n}`,
  status: 'active',
  ven_type: 'server',
  version: '25.2.10-101',
  os_id: 'ubuntu-x86_64-jammy',
  labels: [],
  interfaces: [{ name: 'eth0', address: `10.0.0.${n}` }],
  workloads: [{ href: `${WORKLOADS}/${id(n)}` }],
  conditions: [],
  last_heartbeat_at: HEARD,
  ...more,
})

const STATUS = {
  status: 'active',
  security_policy_sync_state: 'applied',
  security_policy_received_at: '2026-06-15T11:00:00Z',
  security_policy_applied_at: '2026-06-15T11:01:00Z',
  agent_health: [],
  agent_health_errors: { errors: [], warnings: [] },
}

const workload = (n: number, { status = {}, ...more }: Json = {}) => ({
  href: `${WORKLOADS}/${id(n)}`,
  name: `machine ${n}`,
  hostname: `host-${n}`,
  managed: true,
  online: true,
  enforcement_mode: 'full',
  labels: [],
  ven: { href: `${VENS}/${id(n)}` },
  agent: { config: {}, status: { ...STATUS, ...status } },
  ...more,
})

/** Answers the two lists as given, whatever is asked; a workload can be read alone, too. */
function answer(bench: Bench, vens: object[], workloads: { href: string }[] | 403): void {
  const { faults } = bench.simulator
  faults.clear()
  const give = (path: RegExp | string, body: object, status = 200) =>
    faults.add({ kind: 'status', path, status, body, times: 99 })
  give(/\/orgs\/1\/vens$/, vens)
  if (workloads === 403) return give(WORKLOADS, [{ token: 'forbidden_error', message: 'no' }], 403)
  give(/\/orgs\/1\/workloads$/, workloads)
  for (const one of workloads) give(one.href, one)
}

const start = (t: Test) => startBench(t, { estate: handMade({ hosts: {} }) })

t.test('what is wrong stands on the workload, and is joined with what the VEN says', async (t) => {
  const bench = await start(t)
  const info = { agent: { current_version: '25.2.9-300', desired_version: '25.2.10-101' } }
  const upgrade = { notification_type: 'agent.upgrade_time_out', severity: 'err', info, timestamp: HEARD }
  const tampering = { type: 'agent.tampering', severity: 'error', audit_event: '/orgs/1/events/1' }
  const errors = { errors: ['tampering'], warnings: ['security_policy_refresh_failure', null] }
  answer(
    bench,
    [ven(1, { conditions: [{ first_reported_timestamp: null, latest_event: upgrade }, null] })],
    [workload(1, { status: { agent_health: [tampering], agent_health_errors: errors } })],
  )
  const [row] = (await bench.ok('get-vens')).vens
  t.equal(row.health, 'error')
  t.same(row.conditions, [
    {
      condition: 'agent.upgrade_time_out',
      means: 'its upgrade did not finish in time',
      severity: 'error',
      since: HEARD,
      current_version: '25.2.9-300',
      desired_version: '25.2.10-101',
    },
    {
      condition: 'agent.tampering',
      means: 'the firewall of the host was changed behind it',
      severity: 'error',
      since: null,
    },
    {
      condition: 'security_policy_refresh_failure',
      means: 'it could not fetch or apply a policy',
      severity: 'warning',
      since: null,
    },
  ])
  t.equal((await bench.ok('get-vens', { health: 'error' })).total_count, 1)
  t.equal((await bench.ok('get-vens', { condition: 'tampering' })).total_count, 1)
  const report = await bench.ok('ven-health-report')
  t.equal(
    report.summary,
    '1 VEN: 1 in selective or full mode, 1 (100 %) online and enforcing the newest policy; 1 in error.',
  )
  t.same(
    report.in_error.map(({ why }: Json) => why),
    [
      'its upgrade did not finish in time; the firewall of the host was changed behind it; it could not fetch or apply a policy',
    ],
  )
})

t.test('of several workloads the one with the id of the VEN is its machine', async (t) => {
  const bench = await start(t)
  const workloads = [{ href: `${WORKLOADS}/${id(9)}` }, { href: `${WORKLOADS}/${id(1)}` }]
  answer(bench, [ven(1, { workloads })], [workload(9, { enforcement_mode: 'idle', ven: null }), workload(1)])
  const [row] = (await bench.ok('get-vens')).vens
  t.same([row.workload_href, row.enforcement_mode], [`${WORKLOADS}/${id(1)}`, 'full'])
})

t.test('a condition without a word is one, too', async (t) => {
  const bench = await start(t)
  answer(bench, [ven(1)], [workload(1, { status: { agent_health: [{ type: null, severity: 'error' }, null] } })])
  const [row] = (await bench.ok('get-vens')).vens
  t.same(
    [row.health, row.conditions],
    ['error', [{ condition: 'unknown', means: 'unknown', severity: 'error', since: null }]],
  )
})

t.test('a warning alone needs attention, too', async (t) => {
  const bench = await start(t)
  const health = [{ type: 'agent.tampering', severity: 'warning' }]
  answer(bench, [ven(1)], [workload(1, { status: { agent_health: health } })])
  t.equal(
    (await bench.ok('ven-health-report')).summary,
    '1 VEN: 1 in selective or full mode, 1 (100 %) online and enforcing the newest policy; 1 with a warning.',
  )
})

t.test('workloads that may not be read: nothing is taken for fine, and the answer says why', async (t) => {
  const bench = await start(t)
  answer(bench, [ven(1), ven(2)], 403)
  const report = await bench.ok('ven-health-report')
  t.equal(
    report.summary,
    '2 VENs: whether they enforce the newest policy is not known; not known: enforcement_mode of 2, health of 2, online of 2, policy_sync of 2.',
  )
  t.match(report.warnings.join(), /The workloads could not be read, so what the list of VENs does not say is not known/)
  t.same([report.enforcing, report.enforcing_not_known, report.not_known_total], [0, 2, 2])
  for (const filter of [
    { online: false },
    { enforcement_mode: 'full' },
    { policy_sync: 'not_applied' },
    { health: 'healthy' },
  ]) {
    const found = await bench.ok('get-vens', filter)
    t.same([found.vens, found.not_known, found.message], [[], 2, 'No VEN is known to match.'], JSON.stringify(filter))
    t.equal(
      found.warnings.at(-1),
      `The PCE does not tell enough about 2 VENs ("host-1", "host-2") to decide ${Object.keys(filter).join()}: whether they match is not known.`,
    )
  }
})

t.test('a VEN without workload, a workload without VEN, and both forms in one list', async (t) => {
  const bench = await start(t)
  const long = { href: `${WORKLOADS}/${id(2)}`, name: null, enforcement_mode: 'selective', online: true }
  answer(
    bench,
    [
      ven(1),
      ven(2, { workloads: [{ ...long, security_policy_sync_state: 'applied' }] }),
      ven(3, { hostname: null, labels: null, workloads: [] }),
    ],
    [workload(1, { online: false }), workload(4)],
  )
  const report = await bench.ok('ven-health-report')
  t.equal(
    report.summary,
    '3 VENs: 1 online and enforcing the newest policy, not known for 1; 1 offline, not known: health of 2, enforcement_mode of 1, online of 1, policy_sync of 1.',
  )
  t.same(report.warnings, [
    '1 workload ("machine 4") names a VEN that the list of VENs does not have: not counted here.',
  ])
  t.same(
    report.not_known.map(({ name, why }: Json) => [name, why]),
    [
      ['host-2', 'not known: health'],
      [`${VENS}/${id(3)}`, 'not known: online, enforcement_mode, policy_sync, health'],
    ],
  )
  const offline = await bench.ok('get-vens', { online: false })
  t.same([offline.vens.map(({ hostname }: Json) => hostname), offline.not_known], [['host-1'], 1])
  const all = await bench.ok('get-vens')
  t.same(
    all.vens.map(({ hostname, workload_name: name }: Json) => [hostname, name]),
    [
      ['host-1', 'machine 1'],
      ['host-2', null],
      [null, null],
    ],
  )
})

t.test('few VENs: their workloads are read alone; many: the managed ones in one list', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 0 })
  const [{ hostname }]: Json[] = (await bench.ok('get-vens', { max_results: 1 })).vens
  const asked = () => bench.simulator.requests.filter(({ path }) => path.includes('/workloads')).map(({ path }) => path)
  bench.simulator.clearRequests()
  await bench.ok('get-vens', { hostname, online: true })
  t.equal(asked().length, 1)
  t.match(asked()[0], /\/workloads\/[0-9a-f-]+$/)
  bench.simulator.clearRequests()
  await bench.ok('get-vens', { online: true })
  t.ok(asked().every((path) => path.endsWith('/workloads')))
})
