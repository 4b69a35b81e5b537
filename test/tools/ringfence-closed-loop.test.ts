/**
 * The whole way of a ringfence on the simulator: plan, write, provision, change the mode, and the same traffic again. What the plan
 * said of every inbound flow is compared with what the PCE decides then.
 */
import t, { type Test } from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { handMade, type HandMadeEstate, type HandMadeHost } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

interface Application {
  app: string
  env: string
}

/** What may become of a flow by what the plan said of it. "Possibly" promises nothing, and is counted apart. */
const KEPT: Record<string, (decision: string) => boolean> = {
  allowed: (decision) => decision === 'allowed',
  allowed_by_other_rules: (decision) => decision !== 'blocked',
  not_affected: (decision) => decision !== 'blocked',
  cut: (decision) => decision === 'blocked',
  blocked_by_override_deny: (decision) => decision === 'blocked',
  possibly_cut: () => true,
}

const labelsOf = (end: TrafficFlow['src']) =>
  Object.fromEntries((end.workload?.labels ?? []).map(({ key, value }) => [key, value])) as Record<string, string>

function whoIs(end: TrafficFlow['src']): string {
  const { app, env } = labelsOf(end)
  return app !== undefined && env !== undefined ? `${app} ${env}` : end.ip
}

const pairOf = ({ src, dst, service }: TrafficFlow) =>
  [
    src.ip,
    src.fqdn,
    dst.ip,
    service.port,
    service.proto,
    service.process_name,
    service.windows_service_name,
    service.user_name,
  ].join(' ')

async function inboundFlows({ pce }: Bench, { app, env }: Application): Promise<TrafficFlow[]> {
  const labels = await pce.labels.getAll()
  const hrefOf = (key: string, value: string) => labels.find((one) => one.key === key && one.value === value)!.href
  const include = [[{ label: { href: hrefOf('app', app) } }, { label: { href: hrefOf('env', env) } }]]
  return pce.getTrafficFlowsAsync('replay', {
    start_date: '2026-05-16T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include, exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
  })
}

async function setMode({ pce }: Bench, { app, env }: Application, mode: string): Promise<void> {
  const labels = await pce.labels.getAll()
  const wanted = [
    ['app', app],
    ['env', env],
  ].map(([key, value]) => labels.find((one) => one.key === key && one.value === value)!.href)
  for (const workload of await pce.workloads.getAll()) {
    const own = (workload.labels ?? []).map(({ href }) => href)
    if (workload.managed === false || !wanted.every((href) => own.includes(href))) continue
    // What is in full enforcement stays there: a ringfence is no reason to loosen it.
    if (workload.enforcement_mode !== 'full') await pce.workloads.update(workload.href, { enforcement_mode: mode })
  }
}

/** Plans, writes, provisions and compares. Answers how many flows had which effect. */
async function closeTheLoop(
  t: Test,
  bench: Bench,
  application: Application,
  options: object = {},
): Promise<{ plan: Json; counts: Record<string, number> }> {
  const args = { app_name: application.app, env_name: application.env, detail_level: 'full', ...options }
  const before = await inboundFlows(bench, application)
  const plan = await bench.ok('create-ringfence', { ...args, dry_run: true })
  t.notOk('truncated_sections' in plan, 'the plan is shown whole')
  const written = await bench.ok('create-ringfence', args)
  for (const list of ['would_be_cut', 'unlabelled_inbound', 'inbound_remote_apps', 'infrastructure_sources'])
    t.same(written[list], plan[list], `dry run and real run say the same of ${list}`)
  t.same(
    written.ruleset.rules.map(({ description, type }: Json) => [type, description]),
    plan.planned_rules.map(({ description, type }: Json) => [type, description]),
  )
  await bench.ok('provision-policy', { hrefs: [written.ruleset.href] })
  await setMode(bench, application, plan.selective === true ? 'selective' : 'full')

  const said = new Map<string, Set<string>>()
  const listed = [
    ...plan.inbound_remote_apps.map((row: Json) => [`${row.app} ${row.env}`, row]),
    ...plan.unlabelled_inbound.map((row: Json) => [row.ip, row]),
  ] as [string, Json][]
  for (const [who, { observed_ports: ports, ports_total: total }] of listed) {
    t.equal(ports.length, total)
    for (const { port, proto, policy_decision: decision, effect } of ports) {
      const key = `${who} ${port} ${proto} ${decision}`
      said.set(key, (said.get(key) ?? new Set()).add(effect))
    }
  }
  const after = new Map((await inboundFlows(bench, application)).map((flow) => [pairOf(flow), flow.policy_decision]))
  const counts: Record<string, number> = {}
  for (const flow of before) {
    const who = whoIs(flow.src)
    const isOwn = who === `${application.app} ${application.env}`
    const key = `${who} ${flow.service.port} ${flow.service.proto} ${flow.policy_decision}`
    const effects = isOwn ? new Set(['allowed']) : said.get(key)
    const decision = after.get(pairOf(flow)) ?? 'missing'
    if (effects === undefined || ![...effects].some((effect) => KEPT[effect]?.(decision) === true))
      t.fail(`${key} to ${flow.dst.ip}: said ${[...(effects ?? ['nothing'])].join()}, and is ${decision}`)
    for (const effect of effects ?? []) counts[effect] = (counts[effect] ?? 0) + 1
  }
  t.pass(JSON.stringify(counts))
  return { plan, counts }
}

const PAY = { app: 'pay', env: 'prod' }

/** One estate in the mode `own` for the application, `other` for everybody else. */
const estateIn = (
  own: HandMadeHost['mode'],
  other: HandMadeHost['mode'],
  more: Partial<HandMadeEstate> = {},
): HandMadeEstate => ({
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: own },
    'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: own },
    'pay-appliance': { ip: '10.0.0.9', labels: 'app=pay env=prod', managed: false },
    'payments-1': { ip: '10.0.0.4', labels: 'app=payments env=prod', mode: other },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod', mode: other },
    'half-1': { ip: '10.0.2.1', labels: 'app=lonely', mode: other },
    'bare-1': { ip: '10.0.2.3', mode: other },
    'printer-1': { ip: '10.0.2.4', managed: false },
  },
  ipLists: { Office: ['192.168.10.0/24'], Servers: ['10.0.2.0/24'] },
  flows: [
    { from: 'pay-1', to: 'pay-2', port: 5432, connections: 100 },
    { from: 'pay-2', to: 'pay-2', port: 6000 },
    { from: 'crm-1', to: 'pay-1', port: 443, connections: 50 },
    { from: 'crm-1', to: 'pay-appliance', port: 443, connections: 50 },
    { from: 'payments-1', to: 'pay-1', port: 22, connections: 2 },
    { from: 'half-1', to: 'pay-1', port: 22, connections: 7 },
    { from: 'half-1', to: 'pay-appliance', port: 22, connections: 7 },
    { from: 'bare-1', to: 'pay-1', port: 9100, connections: 9 },
    { from: 'printer-1', to: 'pay-1', port: 515 },
    { from: '192.168.10.7', to: 'pay-1', port: 443, connections: 20 },
    { from: '192.168.10.7', to: 'pay-1', port: 22, connections: 20 },
    { from: '8.8.8.8', to: 'pay-2', port: 443, connections: 31 },
    { from: '2a00:1450::8', to: 'pay-1', port: 443 },
    { from: '172.16.5.5', to: 'pay-1', proto: 1 },
    { from: '0.0.0.0', to: 'pay-1', port: 67, proto: 17 },
    { from: 'pay-1', to: 'crm-1', port: 443 },
  ],
  ...more,
})

const MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
const ASKED: Record<string, object> = {
  standard: {},
  'selective, any': { selective: true },
  'selective, ams': { selective: true, deny_consumer: 'ams' },
  'selective, ams_and_any': { selective: true, deny_consumer: 'ams_and_any' },
  'selective on ssh': { selective: true, deny_service: { port: 22, proto: 'tcp' } },
  'selective, skipping what is allowed': { selective: true, skip_allowed: true },
}

/** Each way of asking in some of the modes, and the two plain ones in all of them. */
for (const [at, own] of MODES.entries())
  for (const [place, other] of (['visibility_only', 'selective', 'full'] as const).entries())
    t.test(`${own} among ${other}`, async (t) => {
      for (const [number, [name, options]] of Object.entries(ASKED).entries()) {
        if (number > 1 && number % 4 !== (at + place) % 4) continue
        await t.test(name, async (t) => {
          const bench = await startBench(t, { estate: handMade(estateIn(own, other)), budget: 800_000 })
          const { counts } = await closeTheLoop(t, bench, PAY, options)
          t.ok((counts.cut ?? 0) + (counts.possibly_cut ?? 0) > 0 && (counts.allowed ?? 0) > 0)
        })
      }
    })

t.test('beside the rules of others', async (t) => {
  const https = { port: 443, proto: 6 }
  const ruleSets: HandMadeEstate['ruleSets'] = [
    // By address, by label with another key, by workloads, and one that has nothing to do with it.
    { name: 'office', scope: 'app=pay', allow: [{ from: 'iplist:Office', to: 'ams', services: [https], extra: true }] },
    { name: 'bare', scope: '', allow: [{ from: 'app=crm', to: 'app=pay', services: [https] }] },
    { name: 'other app', scope: 'app=payments', allow: [{ from: 'any', to: 'ams', extra: true }] },
    { name: 'out', scope: 'app=crm', allow: [{ from: 'ams', to: 'iplist:Office' }] },
    {
      name: 'quarantine',
      scope: '',
      override: [{ from: 'app=payments', to: 'app=pay', services: [{ port: 22, proto: 6 }] }],
    },
    // It covers a workload's address, so it holds at one end only: the workload itself may not send.
    {
      name: 'scans',
      scope: 'app=pay',
      allow: [{ from: 'iplist:Servers', to: 'ams', services: [{ port: 9100, proto: 6 }], extra: true }],
    },
    {
      name: 'old deny',
      scope: 'env=prod',
      deny: [{ from: 'any', to: 'ams', extra: true, services: [{ port: 515, proto: 6 }] }],
    },
  ]
  for (const own of MODES)
    for (const [name, options] of Object.entries({ standard: {}, selective: { selective: true, skip_allowed: true } }))
      await t.test(`${own}, ${name}`, async (t) => {
        const other = own === 'full' ? 'selective' : 'visibility_only'
        const bench = await startBench(t, { estate: handMade(estateIn(own, other, { ruleSets })), budget: 800_000 })
        const { counts, plan } = await closeTheLoop(t, bench, PAY, options)
        t.ok((counts.allowed_by_other_rules ?? 0) > 0, 'the office is let in by its own rule')
        t.equal(counts.blocked_by_override_deny, 1, 'an override deny beats the new allow rule')
        t.match(
          plan.would_be_cut.find(({ source }: Json) => source === 'payments (prod)'),
          { effect: 'blocked_by_override_deny', ports: ['22/tcp'] },
        )
      })
})

t.test('an application with hosts in different modes', async (t) => {
  for (const options of [{}, { selective: true }, { selective: true, deny_service: [{ port: 22, proto: 'tcp' }] }]) {
    const estate = estateIn('selective', 'visibility_only')
    estate.hosts!['pay-2']!.mode = 'full'
    estate.flows!.push({ from: 'bare-1', to: 'pay-2', port: 9100 }, { from: '8.8.8.8', to: 'pay-1', port: 22 })
    const bench = await startBench(t, { estate: handMade(estate), budget: 800_000 })
    await closeTheLoop(t, bench, PAY, options)
  }
})

t.test('a ringfence that stands half already, with rules that do not count', async (t) => {
  const ruleSets: HandMadeEstate['ruleSets'] = [
    {
      name: 'RF-pay-prod',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=payments env=prod', to: 'ams', extra: true, enabled: false }],
      deny: [{ from: 'any', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
    },
  ]
  for (const options of [{}, { selective: true, deny_service: { port: 22, proto: 'tcp' } }]) {
    const bench = await startBench(t, {
      estate: handMade(estateIn('selective', 'full', { ruleSets })),
      budget: 800_000,
    })
    const { plan } = await closeTheLoop(t, bench, PAY, options)
    t.equal(plan.merged, true)
  }
})

t.test('on generated estates', async (t) => {
  const seeds = [3, 42]
  for (const seed of seeds) {
    const bench = await startBench(t, { seed, workloads: 120, flows: 2000, budget: 800_000 })
    const busiest = await busiestApplications(bench)
    for (const [at, application] of busiest.entries()) {
      const options = [
        {},
        { selective: true },
        { selective: true, skip_allowed: true },
        { selective: true, deny_consumer: 'ams' },
      ][at % 4]!
      await t.test(`${seed}: ${application.app} ${application.env} ${JSON.stringify(options)}`, async (t) => {
        const { counts } = await closeTheLoop(t, bench, application, { ...options, ruleset_name: `ring ${at}` })
        // Who is skipped in a selective estate has no rule to be sure of.
        if (!('skip_allowed' in options)) t.ok((counts.possibly_cut ?? 0) < 5, 'next to nothing is left open')
      })
    }
  }
})

/** The applications that most is sent to. */
async function busiestApplications({ pce }: Bench): Promise<Application[]> {
  const rows = new Map<string, { one: Application; flows: number }>()
  const flows = await pce.getTrafficFlowsAsync('all', {
    start_date: '2026-05-16T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
  })
  for (const { dst } of flows) {
    const { app, env } = labelsOf(dst)
    if (app === undefined || env === undefined) continue
    const row = rows.get(`${app} ${env}`) ?? { one: { app, env }, flows: 0 }
    row.flows += 1
    rows.set(`${app} ${env}`, row)
  }
  return [...rows.values()]
    .sort((a, b) => b.flows - a.flows)
    .slice(0, 4)
    .map(({ one }) => one)
}
