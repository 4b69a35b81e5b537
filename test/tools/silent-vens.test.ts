/** exposure-report and plan-port-closure where VENs do not answer: what only they would drop is not called dropped. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate, type HandMadeHost } from './hand-made.js'
import { NOW, startBench, type Json } from './harness.js'
import { startListed } from './listed-pce.js'

const OUTSIDE = '203.0.113.9'
const SERVICES = { SMB: { service_ports: [{ port: 445, proto: 6 }] } }
const EXPOSURE = { services: ['SMB'], detail_level: 'full', sections: ['reached', 'services'] }
const CLOSURE = { services: ['SMB'], keep_used: false, max_results: 200, dry_run: true }
const host = (at: number, name: string, more: Partial<HandMadeHost> = {}): HandMadeHost => ({
  ip: `10.0.0.${at}`,
  labels: `app=${name}`,
  mode: 'full',
  ...more,
})
const flowsOf = (pairs: readonly (readonly [from: string, to: string])[]) =>
  pairs.map(([from, to], at) => ({ from, to, port: 445, connections: pairs.length - at }))

/** Starts a PCE with this estate; `told` says what it says otherwise of a workload, by name. */
async function start(t: Test, parts: HandMadeEstate, told: Record<string, object> = {}) {
  const estate = handMade({ services: SERVICES, ...parts })
  for (const workload of estate.workloads as Json[]) Object.assign(workload, told[workload.name])
  return startBench(t, { estate })
}
const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, many) => all + many, 0)
const reachedOf = ({ reached }: Json): string[] =>
  reached.map(({ from, to, by, would_protect: remedy }: Json) => [from, to, by, remedy].join(' '))

t.test('exposure-report: what only a silent VEN would stop is not known, and neither are its remedies', async (t) => {
  const hosts = {
    web: host(1, 'web', { mode: 'visibility_only' }),
    away: host(2, 'away', { online: false }),
    full: host(3, 'full'),
    lazy: host(4, 'lazy', { mode: 'visibility_only', online: false }),
  }
  const flows = flowsOf([
    ['web', 'away'],
    ['full', 'away'],
    ['away', 'web'],
    ['web', 'lazy'],
    [OUTSIDE, 'lazy'],
    ['web', 'full'],
  ])
  const { ok } = await start(t, { hosts, flows })
  const answer = await ok('exposure-report', EXPOSURE)
  t.same(reachedOf(answer), [
    'web away undecided once_online',
    'away web undecided once_online',
    'web lazy by_mode enforce_source',
    `${OUTSIDE} (Any (0.0.0.0/0 and ::/0)) lazy by_mode once_online`,
  ])
  t.same(answer.connections, { by_rule: 0, by_mode: 5, not_enforced: 0, undecided: 10, stopped: 6 })
  t.same(answer.would_protect, { enforce_source: 3, once_online: 12 })
  t.same(
    answer.notes.filter((text: string) => /VEN/.test(text)),
    [
      'Traffic is undecided because of VENs that may not enforce.',
      'The VENs of 2 workloads ("away", "lazy") are offline, not active or not known to answer, so what is enforced there is not certain: 10 connections stopped there alone count as undecided, 2 connections that pass could be stopped there alone (once_online).',
    ],
  )
  t.match(answer.summary, /, 12 only at a VEN that may not enforce, once it is back\. /)
  const some = await ok('exposure-report', { ...EXPOSURE, would_protect: 'once_online' })
  t.equal(some.reached_total, 3)
})

t.test(
  'plan-port-closure: what only a silent VEN would cut is cut once it is back, and a warning names it',
  async (t) => {
    const hosts = {
      web: host(1, 'web', { mode: 'visibility_only' }),
      ...Object.fromEntries(
        [1, 2, 3, 4].map((at) => [`sel${at}`, host(at + 1, `sel${at}`, { mode: 'selective', online: false })]),
      ),
      live: host(7, 'live', { mode: 'selective' }),
      full: host(8, 'full', { online: false }),
    }
    const flows = flowsOf([
      ['web', 'sel1'],
      ['web', 'sel2'],
      ['web', 'sel3'],
      ['web', 'sel4'],
      ['web', 'live'],
      ['sel1', 'live'],
      ['web', 'full'],
    ])
    const plan = await (await start(t, { hosts, flows })).ok('plan-port-closure', CLOSURE)
    t.same(plan.connections, { cut: 5, cut_once_online: 22, blocked_already: 1 })
    t.same(
      plan.lost.map(({ from, to, effect, connections }: Json) => [from, to, effect, connections].join(' ')),
      [
        'web live cut 3',
        'sel1 live cut 2',
        'web sel1 cut_once_online 7',
        'web sel2 cut_once_online 6',
        'web sel3 cut_once_online 5',
        'web sel4 cut_once_online 4',
      ],
    )
    t.same(plan.destinations, { cut: 1, cut_once_online: 4, blocked_already: 1 })
    t.match(plan.message, /; 5 connections of the window would be cut, 22 once their VENs are back, 0 once/)
    t.same(
      plan.warnings.filter((text: string) => text.startsWith('The VEN')),
      [
        'The VENs of 5 workloads ("full", "sel1", "sel2" …) are offline, not active or not known to answer, and until that changes no new policy is certain there: 22 connections would be cut only then (cut_once_online), 1 connection of blocked_already may pass until then.',
      ],
    )
  },
)

t.test('a VEN is silent by what the PCE says of it, whichever way it is read', async (t) => {
  const agent = (last_heartbeat_on: string) => ({ agent: { status: { status: 'active', last_heartbeat_on } } })
  const ven = (status: string) => ({ ven: { href: '/orgs/1/vens/00000000-0000-4000-8000-000000000099', status } })
  const hoursAgo = (hours: number) => new Date(NOW - hours * 3_600_000).toISOString()
  const cases: [name: string, told: object, isSilent: boolean][] = [
    ['offline', { online: false }, true],
    ['untold', { online: null }, true],
    ['suspended', ven('suspended'), true],
    ['stopped', ven('stopped'), true],
    ['mute', agent(hoursAgo(25)), true],
    ['heard', agent(hoursAgo(23)), false],
    ['plain', {}, false],
  ]
  const hosts = {
    web: host(1, 'web', { mode: 'visibility_only' }),
    ...Object.fromEntries(cases.map(([name], at) => [name, host(at + 2, name)])),
    bare: host(20, 'bare', { managed: false, online: false }),
  }
  const flows = flowsOf([...cases.map(([name]) => ['web', name] as const), ['bare', 'offline']])
  const many = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`more${at}`, host(at + 30, `more${at}`, { mode: 'visibility_only' })]),
  )
  const told = Object.fromEntries(cases.map(([name, what]) => [name, what]))
  const listed = flowsOf(Object.keys(many).map((name) => ['web', name] as const))
  const ways: [way: string, parts: HandMadeEstate][] = [
    ['one by one', { hosts, flows }],
    ['in the list', { hosts: { ...hosts, ...many }, flows: [...flows, ...listed] }],
  ]
  for (const [way, parts] of ways) {
    const bench = await start(t, parts, told)
    const answer = await bench.ok('exposure-report', EXPOSURE)
    const found = new Map<string, string>(answer.reached.map(({ to, by }: Json) => [to, by]))
    for (const [name, , isSilent] of cases)
      t.equal(found.get(name) ?? 'stopped', isSilent ? 'undecided' : 'stopped', `${name}, ${way}`)
    t.match(answer.notes.join('\n'), /The VENs of 5 workloads \(/, 'a workload without a VEN is not silent')
    const single = bench.simulator.requests.filter(({ path }) => path.includes('/workloads/'))
    t.equal(single.length > 0, way === 'one by one')
  }
})

t.test('a Kubernetes workload has no VEN that could be silent', async (t) => {
  const [front, basket] = [1, 2].map((at) => ({
    href: `/orgs/1/kubernetes_workloads/${at}`,
    name: `pod-${at}`,
    namespace: 'shop',
    kind: 'Deployment',
    labels: [],
    enforcement_mode: 'full',
    container_cluster: { href: '/orgs/1/container_clusters/c', name: 'k1' },
    private_ip_addresses: [`10.85.0.${at}`],
  })) as [Json, Json]
  const end = ({ private_ip_addresses: [ip], ...workload }: Json) => ({ ip, workload: { ...workload, managed: true } })
  const row = {
    src: end(front),
    dst: end(basket),
    service: { port: 445, proto: 6 },
    num_connections: 10,
    policy_decision: 'blocked',
    flow_direction: 'inbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
  const { ok } = await startListed(t, { lists: { kubernetes_workloads: [front, basket] }, rows: [row] })
  const { connections } = await ok('exposure-report', { services: ['445/tcp'] })
  t.same(connections, { by_rule: 0, by_mode: 0, not_enforced: 0, undecided: 0, stopped: 10 })
})

t.test('totals add up, and only what is dropped without silent VENs is dropped for certain', async (t) => {
  const modes = { seen: 'visibility_only', denied: 'selective', open: 'selective', full: 'full' } as const
  const names = Object.keys(modes).flatMap((name) => [`${name}-on`, `${name}-off`])
  const ends = [...names, OUTSIDE, 'bare']
  const pairs = ends.flatMap((from) =>
    ends.flatMap((to) => (from !== to && to !== OUTSIDE ? [[from, to] as const] : [])),
  )
  const flows = flowsOf(pairs)
  const total = flows.reduce((all, { connections }) => all + connections, 0)
  const ruleSets = [
    {
      name: 'some',
      scope: '',
      allow: [
        { from: 'ams', to: 'any' },
        { from: 'app=full-on', to: 'app=full-off', services: ['SMB'] },
      ],
      deny: [{ from: 'any', to: 'app=denied-off', services: ['SMB'] }],
    },
  ]
  /** The answers where silent VENs are as they are, as if they answered, and as if there were none. */
  const [silent, online, gone] = await Promise.all(
    [{ online: false }, {}, { managed: false }].map(async (more) => {
      const hosts = Object.fromEntries([
        ...names.map((name, at) => {
          const mode = Object.values(modes)[Math.floor(at / 2)]!
          return [name, host(at + 1, name, { mode, ...(name.endsWith('-off') && more) })]
        }),
        ['bare', host(20, 'bare', { managed: false, online: false })],
      ])
      const { ok } = await start(t, { hosts, flows, ruleSets })
      return { exposure: await ok('exposure-report', EXPOSURE), plan: await ok('plan-port-closure', CLOSURE) }
    }),
  )
  t.ok(silent!.plan.connections.cut_once_online > 0 && silent!.exposure.would_protect.once_online > 0)
  const isTold = (all: Json): boolean => all.truncated === undefined || all.truncated === false
  for (const { exposure, plan } of [silent!, online!, gone!]) {
    t.ok(isTold(exposure) && isTold(plan), 'the lists are whole')
    t.equal(sum(exposure.connections), total)
    t.equal(sum(exposure.services[0].connections), total)
    t.equal(sum(exposure.would_protect), total - exposure.connections.stopped)
    t.equal(sum(exposure.reached.map(({ connections }: Json) => connections)), total - exposure.connections.stopped)
    t.equal(sum(plan.connections), total)
    const lost = Object.fromEntries(
      ['cut', 'undecided', 'cut_once_online', 'cut_once_enforced'].map((effect) => [effect, 0]),
    )
    for (const { effect, connections } of plan.lost) lost[effect]! += connections
    for (const [effect, many] of Object.entries(lost)) t.equal(many, plan.connections[effect] ?? 0, effect)
  }
  const nameOf = (end: string) => (end === OUTSIDE ? `${OUTSIDE} (Any (0.0.0.0/0 and ::/0))` : end)
  const foundBy = ({ exposure }: Json, from: string, to: string): Json =>
    exposure.reached.find((one: Json) => one.from === nameOf(from) && one.to === nameOf(to)) ?? { by: 'stopped' }
  const isChange = ({ would_protect: remedy }: Json) => !['not_by_policy', 'not_known'].includes(remedy)
  const changesRules = ({ would_protect: remedy }: Json) => String(remedy).startsWith('change_rules')
  const effectOf = ({ plan }: Json, from: string, to: string): string | undefined =>
    plan.lost.find((one: Json) => one.from === nameOf(from) && one.to === nameOf(to))?.effect
  const later = silent!.plan.lost.filter(({ effect }: Json) => effect === 'cut_once_enforced')
  const isLaterWithout = ({ from, to }: Json) =>
    gone!.plan.lost.some((one: Json) => one.from === from && one.to === to && one.effect === 'cut_once_enforced')
  const waiting = sum(later.filter((one: Json) => !isLaterWithout(one)).map(({ connections }: Json) => connections))
  t.ok(waiting > 0 && waiting < silent!.plan.connections.cut_once_enforced)
  const warned = `${waiting} connections of cut_once_enforced also wait for that`
  t.ok(
    silent!.plan.warnings.some((text: string) => text.includes(warned)),
    warned,
  )
  for (const [from, to] of pairs) {
    const [now, back, without] = [silent, online, gone].map((one) => foundBy(one, from, to)) as [Json, Json, Json]
    const isOpen = back.by === 'stopped' && without.by !== 'stopped'
    t.equal(now.by, isOpen ? 'undecided' : back.by, `exposure, ${from} to ${to}`)
    const isSettled = isChange(without) && (changesRules(back) || !changesRules(without))
    const remedy = isOpen || (back.by !== 'stopped' && isChange(back) && !isSettled) ? 'once_online' : null
    const sure = back.by !== 'stopped' && isChange(back) ? without : back
    t.equal(now.would_protect, remedy ?? sure.would_protect, `remedy, ${from} to ${to}`)
    const [cut, cutBack, cutWithout] = [silent, online, gone].map((one) => effectOf(one, from, to))
    const once = cutWithout === 'cut' ? 'cut' : 'cut_once_online'
    t.equal(cut, cutBack === 'cut' ? once : cutBack, `closure, ${from} to ${to}`)
  }
})

t.test('rules to addresses alone let nothing in, so they are not listed as open', async (t) => {
  const hosts = { web: host(1, 'web'), pay: host(2, 'pay', { mode: 'selective' }) }
  const ruleSets = [
    {
      name: 'Default',
      scope: '',
      allow: [
        { from: 'ams', to: 'any' },
        { from: 'any', to: 'app=pay', services: ['SMB'] },
        { from: 'ams', to: 'host:web', services: ['SMB'] },
      ],
    },
  ]
  const { ok } = await start(t, { hosts, flows: flowsOf([['web', 'pay']]), ruleSets })
  const [plan, exposure] = [await ok('plan-port-closure', CLOSURE), await ok('exposure-report', EXPOSURE)]
  t.same(
    plan.open_rules.map(({ rule }: Json) => rule),
    [
      'Any (0.0.0.0/0 and ::/0) to app=pay, SMB',
      'all workloads to /orgs/1/workloads/00000000-0000-4000-8000-000000000001, SMB',
    ],
  )
  t.equal(plan.open_rules_total, 2)
  t.match(plan.warnings.join('\n'), /2 allow rules of other rule sets cover these services/)
  t.equal(exposure.services[0].allow_rules, 2)
})
