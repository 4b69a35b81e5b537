/** Answers whose judgement hangs on a fact about the PCE that no source settles name it once, in `assumes`. */
import t, { type Test } from 'tap'
import { AMS, handMade, ipTablesRule } from './hand-made.js'
import { startBench, type Json } from './harness.js'
import { startListed } from './listed-pce.js'
import { CART, LABELS, POLICY, PROD, SHOP, hostOf } from './shop-and-cart.js'

const on = (port: number) => [{ port, proto: 6 }]
const HOSTS = {
  'api-1': { ip: '10.0.0.1', labels: 'app=api env=prod', mode: 'selective' as const },
  'sql-1': { ip: '10.0.1.1', labels: 'app=sql env=prod', mode: 'selective' as const },
  'off-1': { ip: '10.0.2.1', labels: 'app=crm', mode: 'idle' as const, network: 'External', endpoint: true },
  'pc-1': { ip: '10.0.5.1', labels: 'app=pc', mode: 'selective' as const },
  'watch-1': { ip: '10.0.4.1', labels: 'app=watch env=prod' },
  'bare-1': { ip: '10.0.3.1', labels: 'app=web env=prod', managed: false },
}
const API = { app_name: 'api', env_name: 'prod' }
const WATCH = { app_name: 'watch', env_name: 'prod' }
const SQL = { app_name: 'sql', env_name: 'prod' }
/** Selective mode reports "allowed" where no rule is about a flow. */
const start = (test: Test) =>
  startBench(test, {
    estate: handMade({
      hosts: HOSTS,
      flows: [
        { from: 'api-1', to: 'bare-1', port: 25 },
        { from: 'watch-1', to: 'bare-1', port: 25 },
        { from: 'pc-1', to: 'sql-1', port: 443 },
        { from: 'off-1', to: 'sql-1', port: 5432 },
      ],
      ipLists: { Clients: ['10.0.5.0/24'] },
      ruleSets: [
        {
          name: 'all',
          scope: '',
          allow: [
            { from: 'app=crm', to: 'app=sql', services: on(5432) },
            { from: 'iplist:Clients', to: 'app=sql', services: on(443) },
          ],
          deny: [{ from: 'app=watch', to: 'app=web', services: on(25) }],
        },
      ],
    }),
    reality: 'lab',
  })

t.test('each tool names what its answer hangs on', async (t) => {
  const bench = await start(t)
  for (const [tool, args, assumes] of [
    ['enforcement-readiness', SQL, ['P107']],
    ['get-policy-coverage-report', SQL, ['P107']],
    ['compliance-check', SQL, ['P107']],
    ['compliance-check', { ...SQL, framework: 'dora' }, ['P107']],
    // None of its checks looks at the port of the row.
    ['compliance-check', { ...SQL, framework: 'cis' }, undefined],
    ['compliance-check', API, undefined],
    ['preview-enforcement-change', { ...WATCH, enforcement_mode: 'selective' }, ['P51']],
    ['preview-enforcement-change', { ...SQL, enforcement_mode: 'full' }, ['P107']],
    ['preview-enforcement-change', { ...API, enforcement_mode: 'idle' }, undefined],
    ['set-enforcement-mode', { ...SQL, enforcement_mode: 'full', dry_run: true }, ['P107']],
    ['create-ringfence', { ...SQL, selective: true, deny_consumer: 'ams', dry_run: true }, ['P51']],
    ['suggest-rule', { source: 'off-1', destination: 'sql-1', port: 5432, proto: 'tcp' }, ['P107']],
    ['find-rules', { provider: 'app=sql' }, ['P96']],
    ['find-rules', { text: 'all' }, undefined],
  ] as [string, Json, string[] | undefined][]) {
    const answer = await bench.ok(tool, args)
    t.same(answer.assumes, assumes, `${tool} ${JSON.stringify(args)}`)
    t.notMatch(JSON.stringify({ ...answer, assumes: undefined }), /\(P\d+\)/, `${tool}: and nowhere else`)
  }
})

t.test('a ringfence may not reach a source off the corporate network, though it has a rule for it', async (t) => {
  const OPEN = [{ name: 'all', scope: '', allow: [{ from: 'ams', to: 'app=sql', services: on(5432) }] }]
  const RINGFENCE = { ...SQL, dry_run: true }
  const startWith = (ruleSets: typeof OPEN) =>
    startBench(t, {
      estate: handMade({
        hosts: {
          'sql-1': { ip: '10.0.1.1', labels: 'app=sql env=prod', mode: 'full' },
          'off-1': { ip: '10.0.2.1', labels: 'app=crm env=prod', mode: 'idle', network: 'External', endpoint: true },
          'in-1': { ip: '10.0.3.1', labels: 'app=web env=prod', mode: 'idle' },
        },
        flows: ['off-1', 'in-1'].map((from) => ({ from, to: 'sql-1', port: 5432 })),
        ruleSets,
      }),
    })
  const OFF = 'rules for the corporate network, at an end off it'
  for (const [ruleSets, decision, depends] of [
    [OPEN, 'allowed', `an unknown enforcement mode; ${OFF}`],
    [[], 'blocked', `an unknown enforcement mode; ${OFF}`],
  ] as const) {
    const bench = await startWith([...ruleSets])
    const { inbound_remote_apps: sources, assumes } = await bench.ok('create-ringfence', RINGFENCE)
    t.same(assumes, ['P107'], decision)
    t.same(
      sources.map(({ app, rule, observed_ports: [port] }: Json) => [
        app,
        rule,
        port.policy_decision,
        port.effect,
        port.depends_on,
      ]),
      [
        ['crm', 'new', decision, 'possibly_cut', depends],
        ['web', 'new', decision, 'allowed', undefined],
      ],
    )
  }
})

const CART_PROD = { app_name: 'cart', env_name: 'prod' }
const POD = { href: '/orgs/1/kubernetes_workloads/front', name: 'front', labels: [SHOP] }

/** A row from a pod to a host in selective mode. */
const row = (more: Json): Json => ({
  src: { ip: '10.85.0.20', workload: { ...POD, managed: true, enforcement_mode: 'idle' } },
  dst: { ip: '10.1.0.1', workload: hostOf('db-1', CART, 'selective') },
  service: { port: 8080, proto: 6 },
  num_connections: 1,
  policy_decision: 'allowed',
  flow_direction: 'inbound',
  timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  ...more,
})

t.test('where rules decide about a pod', async (t) => {
  const ask = async (tool: string, args: Json, more: Json) => {
    const lists = {
      labels: LABELS,
      workloads: [hostOf('db-1', CART, 'selective')],
      kubernetes_workloads: [{ ...POD, enforcement_mode: 'idle', private_ip_addresses: ['10.85.0.20'] }],
      ...POLICY,
    }
    const bench = await startListed(t, { lists, rows: [row(more)] })
    return (await bench.ok(tool, args)).assumes
  }
  for (const [tool, args] of [
    ['enforcement-readiness', CART_PROD],
    ['get-policy-coverage-report', CART_PROD],
    ['compliance-check', CART_PROD],
    ['preview-enforcement-change', { ...CART_PROD, enforcement_mode: 'full' }],
  ] as const) {
    t.same(await ask(tool, args, {}), ['P106'], tool)
    t.same(await ask(tool, args, { policy_decision: 'blocked' }), ['P106'], `${tool}: whatever was recorded`)
  }
  const ringfence = (pod: Json) =>
    ask(
      'create-ringfence',
      { ...CART_PROD, dry_run: true },
      { policy_decision: 'blocked', src: { ip: '10.85.0.20', workload: pod } },
    )
  const pod = { ...POD, managed: true, enforcement_mode: 'idle' }
  t.same(await ringfence({ ...pod, labels: [SHOP, PROD] }), ['P106'], 'it gets a rule')
  t.same(await ringfence(pod), ['P106'], 'that no rule lets it in today depends on it as well')
})

t.test('what a change of the policy does', async (t) => {
  const only = (from: string, to: string, more: Json = {}) => [{ from, to, services: on(443), ...more }]
  const bench = await startBench(t, {
    estate: handMade({
      hosts: { 'api-1': { ip: '10.0.0.1', labels: 'app=api env=prod' } },
      ipLists: { Clients: ['10.0.5.0/24'] },
      ruleSets: [
        { name: 'rules', scope: '', allow: only('ams', 'app=api') },
        { name: 'denies', scope: '', deny: only('app=api', 'iplist:Clients') },
        { name: 'overrides', scope: '', override: only('app=api', 'iplist:Clients') },
        { name: 'inbound', scope: '', deny: only('iplist:Clients', 'app=api') },
      ],
    }),
  })
  const { pce } = bench
  const sets = Object.fromEntries((await pce.ruleSets.getAll()).map((ruleSet) => [ruleSet.name, ruleSet]))
  const [allow] = sets.rules!.rules!
  const [label] = await pce.labels.getAll()
  const but = { label: { href: label!.href }, exclusion: true }
  const off = (name: string) => () => pce.denyRules.update(sets[name]!.deny_rules![0]!.href, { enabled: false })
  const update = (body: Json) => () => pce.rules.update(allow!.href, body)
  const { href: _href, ...tables } = ipTablesRule('-j DROP')
  for (const [what, change, name, assumes, effect] of [
    ['denied at sources alone', off('denies'), 'denies', ['P51'], 'widening'],
    ['denied at sources in full mode', off('overrides'), 'overrides', undefined, 'widening'],
    ['denied at destinations', off('inbound'), 'inbound', undefined, 'widening'],
    ['excluded from all', update({ consumers: [AMS, but] }), 'rules', ['P65'], 'narrowing'],
    ['for all networks', update({ network_type: 'all' }), 'rules', ['P107'], 'widening'],
    ['for other networks', update({ network_type: 'non_brn' }), 'rules', ['P107'], 'rules for other networks'],
    [
      'in the words of iptables',
      () => pce.ruleSets.update(sets.rules!.href, { ip_tables_rules: [tables] }),
      'rules',
      ['P19'],
      'rules in the words of iptables',
    ],
  ] as [string, () => Promise<unknown>, string, string[] | undefined, string][]) {
    await change()
    const { changes, assumes: draft } = await bench.ok('compare-draft-active')
    const [row] = changes.updated
    t.same(
      [row.effect ?? row.effect_note, draft],
      [effect.includes(' ') ? `Undecided because of ${effect}.` : effect, assumes],
      what,
    )
    const between = { from: 'active', to: 'draft' }
    t.same((await bench.ok('compare-policy-versions', between)).assumes, assumes, `${what}: versions`)
    const { losses, assumes: lost } = await bench.ok('discard-draft-changes', { all: true, dry_run: true })
    t.same([lost, losses[0].name, 'assumes' in losses[0]], [assumes, name, false], `${what}: discarded, told once`)
    await pce.bulkDeletePolicyObjects([sets[name]!.href])
  }
})

t.test('a rule that another one covers only if an exclusion takes nothing from all workloads', async (t) => {
  const web = [{ from: 'app=api', to: 'app=sql', services: on(443) }]
  const estate = handMade({ hosts: HOSTS, ruleSets: [{ name: 'all', scope: '', allow: [...web, ...web] }] })
  const bench = await startBench(t, { estate })
  const [older, newer] = (await bench.pce.ruleSets.getAll()).flatMap(({ rules }) => rules ?? [])
  const ask = async (consumers: Json[]) => {
    await bench.pce.rules.update(older!.href, { consumers })
    const { undecided, assumes, findings } = await bench.ok('find-redundant-rules')
    return [undecided?.examples.map(({ href }: Json) => href), assumes, findings.length]
  }
  const [api] = newer!.consumers
  t.same(await ask([AMS, { ...api, exclusion: true }]), [[newer!.href], ['P65'], 0])
  t.same(await ask([AMS]), [undefined, undefined, 1], 'what is certain assumes nothing')
})

t.test('a rule that excludes a label, about a workload without any label of its key', async (t) => {
  const estate = handMade({
    hosts: {
      'sql-1': { ip: '10.0.1.1', labels: 'app=sql env=prod', mode: 'full' },
      'web-1': { ip: '10.0.2.1', labels: 'app=web env=dev', mode: 'idle' },
      'bare-1': { ip: '10.0.3.1', labels: 'app=web', mode: 'idle' },
    },
    ruleSets: [{ name: 'all', scope: '', allow: [{ from: 'env=prod', to: 'app=sql', services: on(5432) }] }],
  })
  const bench = await startBench(t, { estate })
  const [rule] = (await bench.pce.ruleSets.getAll()).flatMap(({ rules }) => rules ?? [])
  await bench.pce.rules.update(rule!.href, { consumers: [{ ...rule!.consumers[0]!, exclusion: true }] })
  const ask = async (source: string) => {
    const flow = { source, destination: 'sql-1', port: 5432, proto: 'tcp' }
    const { draft, assumes } = await bench.ok('explain-flow', flow)
    return [draft.verdict, assumes]
  }
  t.same(await ask('web-1'), ['allowed', undefined])
  t.same(await ask('bare-1'), ['uncertain', ['P65']])
})
