/** create-ringfence beside rules that do not do what they seem to: what counts, what does not, and what is said of it. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { AS_GUIDED, startBench, type Bench, type BenchOptions, type Json } from './harness.js'
import { partial } from '../partial.js'
import { lossesOf } from './losses.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const PORT = (port: number) => [{ port, proto: 6 }]

const start = (t: Test, estate: HandMadeEstate, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })
const effects = (plan: Json) => lossesOf(plan).map(({ source, effect }) => [source, effect])
const text = (plan: Json): string => plan.warnings.join('\n')

/** One host of the application and whoever sends to it. */
const estate = (mode: 'idle' | 'visibility_only' | 'selective' | 'full', more: Partial<HandMadeEstate>) => ({
  ...more,
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod role=web', mode: 'full' as const },
    ...more.hosts,
  },
})

/** What crm sends is allowed by an extra-scope rule that stands. */
const ALREADY_ALLOWED = estate('visibility_only', {
  flows: [{ from: 'crm-1', to: 'pay-1' }],
  ruleSets: [
    {
      name: 'RF-pay-prod',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=crm env=prod', to: 'ams', extra: true }],
    },
  ],
})

t.test("existing rules that do less than the ringfence's do not count", async (t) => {
  const bench = await start(t, ALREADY_ALLOWED)
  const { pce, simulator } = bench
  const [ruleSet] = await pce.ruleSets.getAll()
  const rule = ruleSet!.rules![0] as Json
  const labels = await pce.labels.getAll()
  const label = (value: string, more: object = {}) => ({
    label: { href: labels.find((one) => one.value === value)!.href },
    ...more,
  })
  const ams = { actors: 'ams' }
  const both = [label('crm'), label('prod')]
  const resolved = (providers: string, consumers: string) => ({
    resolve_labels_as: { providers: [providers], consumers: [consumers] },
  })
  const href = '/orgs/1/label_groups/1'
  const cases: [string, Json, RegExp | null][] = [
    ['as it is', {}, null],
    ['further consumers', { consumers: [...both, label('pay')] }, null],
    ['further addresses', { consumers: [...both, { ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } }] }, null],
    ['all networks', { network_type: 'all' }, null],
    ['disabled', { enabled: false }, /it is disabled/],
    ['to be deleted', { update_type: 'delete' }, /its deletion is pending/],
    ['some services', { ingress_services: PORT(443) }, /some services only/],
    ['providers', { providers: [label('web')] }, /not all workloads of the scope/],
    ['providers excluded', { providers: [ams, label('web', { exclusion: true })] }, /excludes labels/],
    ['consumers excluded', { consumers: [...both, label('web', { exclusion: true })] }, /excludes labels/],
    ['programs', { egress_services: [{ href: '/orgs/1/sec_policy/draft/services/1' }] }, /some programs only/],
    ['users', { consuming_security_principals: [{ href: '/orgs/1/security_principals/1' }] }, /some users only/],
    ['providers resolved', resolved('virtual_services', 'workloads'), /stand for something other than workloads/],
    ['consumers resolved', resolved('workloads', 'virtual_services'), /stand for something other than workloads/],
    ['a label group', { consumers: [{ label_group: { href } }, label('prod')] }, /consumers include a label group/],
    ['a label group more', { consumers: [...both, { label_group: { href } }] }, /consumers include a label group/],
    ['another key', { consumers: [...both, label('web')] }, /further labels narrow/],
    ['a dimension', { consumers: [...both, { label_dimension: 'role' }] }, /its consumers include something else/],
    ['a provider dimension', { providers: [ams, { label_dimension: 'role' }] }, /its providers include something else/],
    ['a network', { network_type: 'non_brn' }, /further conditions/],
    ['a network of a later release', { network_type: 'guest' }, /further conditions/],
    ['a field of a later release', { posture: 'healthy' }, /further conditions/],
    ['all addresses but', { all_ips_except_for_in_consumers: true }, /further conditions/],
    ['all addresses but, providers', { all_ips_except_for_in_providers: true }, /further conditions/],
    ['stateless', { stateless: true }, /further conditions/],
    ['encrypted', { sec_connect: true }, /further conditions/],
    ['by machine', { machine_auth: true }, /further conditions/],
    ['inside the scope only', { unscoped_consumers: false }, undefined as never],
    ['another application', { consumers: [label('pay'), label('prod')] }, undefined as never],
  ]
  for (const [name, change, reason] of cases) {
    simulator.faults.clear()
    const body = [{ ...ruleSet, deny_rules: [], rules: [{ ...rule, ...change }] }]
    simulator.faults.add({ kind: 'status', path: /draft\/rule_sets$/, times: 9, status: 200, body })
    const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
    t.equal(plan.inbound_remote_apps[0].rule, reason === null ? 'existing' : 'new', name)
    if (reason instanceof RegExp) t.match(text(plan), new RegExp(`was not counted, because .*${reason.source}`), name)
    else t.notMatch(text(plan), /was not counted/, name)
  }
})

t.test('existing deny rules with conditions do not replace the deny rule', async (t) => {
  const bench = await start(
    t,
    estate('visibility_only', {
      flows: [{ from: '8.8.8.8', to: 'pay-1' }],
      ruleSets: [{ name: 'RF-pay-prod', scope: 'app=pay env=prod', deny: [{ from: 'any', to: 'ams', extra: true }] }],
    }),
  )
  const { pce, simulator } = bench
  const [ruleSet] = await pce.ruleSets.getAll()
  const [rule] = (await pce.denyRules.getAll('draft', ruleSet!.href)) as Json[]
  const web = { label: { href: (await pce.labels.getAll()).find(({ value }) => value === 'web')!.href } }
  const cases: [string, Json, boolean][] = [
    ['as it is', {}, true],
    ['disabled', { enabled: false }, false],
    ['to be deleted', { update_type: 'delete' }, false],
    ['override', { override: true }, false],
    ['inside the scope only', { unscoped_consumers: false }, false],
    ['providers', { providers: [web] }, false],
    ['providers excluded', { providers: [{ actors: 'ams' }, { ...web, exclusion: true }] }, false],
    ['programs', { egress_services: [{ href: '/orgs/1/sec_policy/draft/services/1' }] }, false],
    ['a network', { network_type: 'non_brn' }, false],
    ['all addresses but', { all_ips_except_for_in_providers: true }, false],
    ['some services', { ingress_services: PORT(443) }, false],
  ]
  for (const [name, change, counts] of cases) {
    simulator.faults.clear()
    const body = [{ ...ruleSet, deny_rules: [{ ...rule, ...change }] }]
    simulator.faults.add({ kind: 'status', path: /draft\/rule_sets$/, times: 9, status: 200, body })
    const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
    t.equal(plan.planned_rules.at(-1).type === 'deny (block all inbound)', !counts, name)
    t.equal(plan.has_deny_all_inbound, counts, name)
  }
})

t.test("reports others' deny rules, whatever mode hides them", async (t) => {
  for (const mode of ['idle', 'visibility_only', 'selective'] as const) {
    const bench = await start(
      t,
      estate(mode, {
        hosts: { 'bare-1': { ip: '10.0.2.5' } },
        flows: [
          { from: '8.8.8.8', to: 'pay-1', port: 515 },
          { from: '8.8.4.4', to: 'pay-1', port: 22 },
          { from: 'bare-1', to: 'pay-1', port: 443 },
          { from: '9.9.9.9', to: 'pay-1', port: 443 },
        ],
        ruleSets: [
          { name: 'old', scope: 'env=prod', deny: [{ from: 'any', to: 'ams', extra: true, services: PORT(515) }] },
          { name: 'elsewhere', scope: 'app=crm', deny: [{ from: 'any', to: 'ams', extra: true }] },
        ],
      }),
    )
    const options = { selective: true, deny_service: { port: 22, proto: 'tcp' }, dry_run: true }
    const plan = await bench.ok('create-ringfence', { ...PAY, ...options })
    t.same(effects(plan).sort(), [
      ['8.8.4.4', 'cut'],
      ['8.8.8.8', 'cut'],
    ])
    bench.simulator.faults.add({ kind: 'status', path: /rule_sets\/\d+\/deny_rules$/, times: 9, status: 500 })
    // Deny rules come with their rule sets here, so nothing is asked for them.
    t.same(effects(await bench.ok('create-ringfence', { ...PAY, ...options })).length, 2)
  }
})

t.test('an enforcement boundary is a deny rule for everyone', async (t) => {
  const bench = await start(t, estate('visibility_only', { flows: [{ from: '8.8.8.8', to: 'pay-1', port: 515 }] }))
  const options = { selective: true, deny_service: { port: 22, proto: 'tcp' }, dry_run: true }
  t.same(effects(await bench.ok('create-ringfence', { ...PAY, ...options })), [])
  const boundary = {
    name: 'wall',
    providers: [{ actors: 'ams' }],
    consumers: [{ ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } }],
    ingress_services: PORT(515),
  }
  await bench.pce.enforcementBoundaries.create(boundary)
  const pending = await bench.ok('create-ringfence', { ...PAY, ...options })
  t.same(effects(pending), [['8.8.8.8', 'possibly_cut']])
  t.match(text(pending), /not provisioned \("wall"\)/)
  await bench.ok('provision-policy', {})
  t.same(effects(await bench.ok('create-ringfence', { ...PAY, ...options })), [['8.8.8.8', 'cut']])
})

t.test('reports an override deny hidden by a stricter verdict', async (t) => {
  const bench = await start(
    t,
    estate('visibility_only', {
      flows: [{ from: 'crm-1', to: 'pay-1', port: 22 }],
      ruleSets: [
        {
          name: 'quarantine',
          scope: 'app=pay',
          override: [{ from: 'any', to: 'ams', extra: true, services: PORT(22) }],
        },
      ],
    }),
  )
  t.same(effects(await bench.ok('create-ringfence', { ...PAY, dry_run: true })), [
    ['crm (prod)', 'blocked_by_override_deny'],
  ])
  bench.simulator.faults.add({ kind: 'status', path: /update_rules$/, times: 9, status: 403 })
  t.same(effects(await bench.ok('create-ringfence', { ...PAY, dry_run: true })), [
    ['crm (prod)', 'blocked_by_override_deny'],
  ])
})

t.test('does not rely on unprovisioned rules', async (t) => {
  for (const mode of ['visibility_only', 'selective'] as const) {
    const bench = await start(
      t,
      estate(mode, {
        ipLists: { Office: ['192.168.10.0/24'] },
        flows: [
          { from: '192.168.10.7', to: 'pay-1', connections: 50 },
          { from: '8.8.8.8', to: 'pay-1', connections: 5 },
        ],
      }),
    )
    const rules = [
      {
        providers: ['ams'],
        consumers: ['iplist:Office'],
        ingress_services: ['All Services'],
        unscoped_consumers: true,
      },
    ]
    await bench.ok('create-ruleset', { name: 'office', scopes: [['app=pay']], rules })
    const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
    t.same(effects(plan), [
      ['8.8.8.8', 'cut'],
      ['192.168.10.7', 'possibly_cut'],
    ])
    t.match(text(plan), /not provisioned \("office"\)/)
    await bench.ok('provision-policy', {})
    t.same(effects(await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })), [
      ['8.8.8.8', 'cut'],
    ])
  }
})

t.test('an Any list covers every address only if its ranges do', async (t) => {
  const bench: Bench = await start(
    t,
    estate('visibility_only', {
      flows: [
        { from: '8.8.8.8', to: 'pay-1', connections: 2 },
        { from: '2a00:1450::8', to: 'pay-1' },
      ],
    }),
  )
  const [v4, v6] = ['8.8.8.8', '2a00:1450::8']
  const all6 = 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'
  const cases: [object[] | undefined, string[][], RegExp | null][] = [
    [
      [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }],
      [
        [v4, 'cut'],
        [v6, 'cut'],
      ],
      null,
    ],
    [
      [
        { from_ip: '0.0.0.0', to_ip: '255.255.255.255' },
        { from_ip: '::', to_ip: all6 },
      ],
      [
        [v4, 'cut'],
        [v6, 'cut'],
      ],
      null,
    ],
    [[{ from_ip: '0.0.0.0/0' }], [[v4, 'cut']], /has no IPv6 range/],
    [
      undefined,
      [
        [v4, 'possibly_cut'],
        [v6, 'possibly_cut'],
      ],
      /may not cover every address/,
    ],
    [
      [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }, { from_ip: '10.9.0.0/16', exclusion: true }],
      [
        [v4, 'cut'],
        [v6, 'cut'],
      ],
      /may not cover every address/,
    ],
    [
      [{ from_ip: '0.0.0.0/1' }, { from_ip: '128.0.0.0/1' }, { from_ip: '::/0' }],
      [
        [v4, 'cut'],
        [v6, 'cut'],
      ],
      /may not cover every address/,
    ],
  ]
  for (const [ranges, wanted, warning] of cases) {
    bench.simulator.faults.clear()
    const list = { href: '/orgs/1/sec_policy/draft/ip_lists/1', name: 'Any (0.0.0.0/0 and ::/0)', ip_ranges: ranges }
    bench.simulator.faults.add({ kind: 'status', path: /draft\/ip_lists$/, times: 9, status: 200, body: [list] })
    const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
    t.same(effects(plan), wanted, JSON.stringify(ranges))
    if (warning === null) t.notMatch(text(plan), /Any IP list/)
    else partial(t, text(plan), warning)
  }
})

t.test('names outbound traffic that full enforcement would cut', async (t) => {
  const whole = (mode: 'selective' | 'visibility_only') =>
    estate(mode, {
      hosts: {
        'dns-1': { ip: '10.0.0.5', labels: 'app=dns env=prod', managed: false },
        'db-1': { ip: '10.0.0.6', labels: 'app=db env=prod' },
      },
      flows: [
        { from: 'pay-1', to: 'dns-1', port: 53, proto: 17, connections: 500 },
        { from: 'crm-1', to: 'dns-1', port: 53, proto: 17, connections: 500 },
        { from: 'db-1', to: 'dns-1', port: 53, proto: 17, connections: 500 },
        { from: 'pay-1', to: '9.9.9.9', port: 443, connections: 90 },
        { from: 'pay-1', to: 'db-1', port: 5432, connections: 9 },
      ],
      ruleSets: [{ name: 'db', scope: '', allow: [{ from: 'app=pay', to: 'app=db' }] }],
    })
  // Recorded PCEs report it as potentially blocked, and the guide as allowed.
  for (const options of [AS_GUIDED, {}]) {
    const bench = await start(t, whole('selective'), options)
    const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
    const said = plan.warnings.find((one: string) => /no outbound rules/.test(one))
    t.match(said, /\(590 connections in the window, all of them allowed today only because selective mode/)
  }
  const bench = await start(t, whole('visibility_only'))
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  const said = plan.warnings.find((one: string) => /no outbound rules/.test(one))
  t.match(said, /\(590 connections in the window\)/, 'where nothing is enforced, no mode is the reason')
  t.match(said, /Busiest: "dns \(prod\)" on 53\/udp; "9\.9\.9\.9" on 443\/tcp\./)
  t.match(said, /Infrastructure services among them: "dns \(prod\)"\./)
  t.notMatch(text(await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })), /no outbound rules/)
})

t.test('a rule that stands is told of, also where its source could be skipped', async (t) => {
  const bench = await start(t, ALREADY_ALLOWED)
  const plan = await bench.ok('create-ringfence', { ...PAY, skip_allowed: true, dry_run: true })
  const [{ coverage, rule }] = plan.inbound_remote_apps
  t.same([coverage, rule], ['already_allowed', 'existing'])
})

t.test('an application is allowed already only where all of its traffic is', async (t) => {
  for (const flows of [
    [443, 8443],
    [8443, 443],
  ]) {
    const bench = await start(
      t,
      estate('full', {
        flows: flows.map((port) => ({ from: 'crm-1', to: 'pay-1', port })),
        ruleSets: [
          { name: 'web', scope: '', allow: [{ from: 'app=crm', to: 'app=pay', extra: true, services: PORT(443) }] },
        ],
      }),
    )
    const plan = await bench.ok('create-ringfence', { ...PAY, skip_allowed: true, dry_run: true })
    const [{ coverage, rule }] = plan.inbound_remote_apps
    t.same([coverage, rule], ['newly_allowed', 'new'], `${flows.join(', then ')}`)
  }
})

t.test('a deny rule that stands counts for the consumers that it names, and for no others', async (t) => {
  const deny = [{ from: 'any', to: 'ams', extra: true }]
  const bench = await start(
    t,
    estate('selective', {
      flows: [{ from: '8.8.8.8', to: 'pay-1' }],
      ruleSets: [{ name: 'RF-pay-prod', scope: 'app=pay env=prod', deny }],
    }),
  )
  for (const [deny_consumer, isNew] of [
    ['any', false],
    ['ams', true],
    ['ams_and_any', true],
  ] as const) {
    const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, deny_consumer, dry_run: true })
    t.equal(plan.planned_rules.at(-1).type === 'deny (block all inbound)', isNew, deny_consumer)
  }
})

t.test('what a source without labels is', async (t) => {
  const kinds = {
    '8.8.8.8': 'internet',
    '192.0.2.7': 'internet',
    '10.9.9.9': 'unknown_ip',
    '169.254.3.4': 'unknown_ip',
    '0.0.0.0': 'unknown_ip',
    '127.0.0.1': 'unknown_ip',
    '192.168.10.7': 'ip_list',
    'bare-1': 'unlabelled_workload',
    'half-1': 'half_labelled',
  }
  const bench = await start(
    t,
    estate('full', {
      hosts: { 'bare-1': { ip: '10.0.2.5' }, 'half-1': { ip: '10.0.2.6', labels: 'app=crm' } },
      ipLists: { Office: ['192.168.10.0/24'] },
      flows: Object.keys(kinds).map((from) => ({ from, to: 'pay-1' })),
    }),
  )
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.same(Object.fromEntries(lossesOf(plan).map(({ source, kind }) => [source, kind])), kinds)
})

t.test('deny rules of others that cannot be read may deny anything', async (t) => {
  const bench = await start(
    t,
    estate('selective', {
      flows: [{ from: '8.8.8.8', to: 'pay-1', port: 515 }],
      ruleSets: [{ name: 'old', scope: 'env=prod', deny: [{ from: 'any', to: 'ams', services: PORT(9100) }] }],
    }),
  )
  const options = { selective: true, deny_service: { port: 22, proto: 'tcp' }, dry_run: true }
  t.same(effects(await bench.ok('create-ringfence', { ...PAY, ...options })), [])
  // A release that keeps them apart.
  const body = (await bench.pce.ruleSets.getAll()).map(({ deny_rules: _apart, ...set }) => set)
  bench.simulator.faults.add({ kind: 'status', path: /draft\/rule_sets$/, times: 9, status: 200, body })
  bench.simulator.faults.add({ kind: 'status', path: /rule_sets\/\d+\/deny_rules$/, times: 99, status: 403 })
  const plan = await bench.ok('create-ringfence', { ...PAY, ...options })
  t.same(effects(plan), [['8.8.8.8', 'possibly_cut']])
  t.match(text(plan), /could not be read \("old"\)/)
})

t.test('a write whose answer is lost is not counted as missing where it stands', async (t) => {
  for (const [kind, missing] of [
    ['commit-then-drop', 1],
    ['reset', 2],
  ] as const) {
    const bench = await start(t, estate('visibility_only', { flows: [{ from: 'crm-1', to: 'pay-1' }] }))
    // The rule set, the rule inside, one for crm (prod), the deny rule.
    const path = /\/rule_sets\/\d+\/sec_rules$/
    bench.simulator.faults.add({ kind, path, method: 'POST', skip: 1, times: 1 })
    const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, 'outcome_unknown')
    partial(t, error, { written: { length: 2 }, stands: { length: 4 - missing }, not_written: missing })
  }
})

/** Sources of two environments, one of which has a rule already. */
const MIXED = estate('visibility_only', {
  hosts: {
    'crm-dev': { ip: '10.0.1.2', labels: 'app=crm env=dev' },
    'erp-dev': { ip: '10.0.1.3', labels: 'app=erp env=dev' },
    'web-1': { ip: '10.0.1.4', labels: 'app=web env=prod' },
  },
  flows: [
    { from: 'crm-1', to: 'pay-1', port: 443 },
    { from: 'crm-dev', to: 'pay-1', port: 443, connections: 20 },
    { from: 'crm-dev', to: 'pay-1', port: 22, connections: 3 },
    { from: 'erp-dev', to: 'pay-1', port: 443, connections: 7 },
    { from: 'web-1', to: 'pay-1', port: 443 },
  ],
  labels: ['app=a|b', 'env=b|prod', 'app=a', 'env=prod', 'app=odd (prod)', 'role=db'],
})
const ruleOf = (plan: Json) =>
  Object.fromEntries(plan.inbound_remote_apps.map(({ app, env, rule }: Json) => [`${app}|${env}`, rule]))

t.test('sources go by the names of their workloads', async (t) => {
  const bench = await start(t, {
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
      'scan-1': { ip: '10.0.0.2' },
      'disk-1': { ip: '10.0.0.3', labels: 'app=disk' },
    },
    flows: [
      { from: 'scan-1', to: 'pay-1' },
      { from: 'disk-1', to: 'pay-1', port: 445 },
    ],
  })
  await bench.ok('update-workload', { name: 'scan-1', new_name: 'Scanner' })
  const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
  t.same(
    plan.unlabelled_inbound.map(({ name, hostname }: Json) => [name, hostname]),
    [
      ['Scanner', 'scan-1'],
      [undefined, 'disk-1'],
    ],
  )
  t.same(plan.would_be_cut.map(({ source }: Json) => source).sort(), ['Scanner', 'disk-1'])
})

t.test('sources of another environment are let in with a warning, or left out', async (t) => {
  const bench = await start(t, MIXED)
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.same(
    plan.warnings.filter((one: string) => one.includes('environments')),
    [
      'Lets in sources of other environments than "prod": "crm (dev)", 23 connections on 443/tcp, 22/tcp; "erp (dev)", 7 connections on 443/tcp. exclude_sources or environments leaves them out.',
    ],
  )

  const prodOnly = await bench.ok('create-ringfence', { ...PAY, environments: ['prod'], dry_run: true })
  t.same(ruleOf(prodOnly), { 'crm|dev': 'excluded', 'crm|prod': 'new', 'erp|dev': 'excluded', 'web|prod': 'new' })
  t.same(
    prodOnly.would_be_cut.map(({ effect, source, ports, connections }: Json) => [effect, source, ports, connections]),
    [
      ['cut', 'crm (dev)', ['443/tcp', '22/tcp'], 23],
      ['cut', 'erp (dev)', ['443/tcp'], 7],
    ],
    'what is left out is shown as what will be cut',
  )
  t.same(
    prodOnly.planned_rules.map(({ consumers }: Json) => consumers),
    ['All workloads', 'app=crm, env=prod', 'app=web, env=prod'],
  )
  t.match(text(prodOnly), /Left out, without a rule: "crm \(dev\)"; "erp \(dev\)"\./)
  t.notMatch(text(prodOnly), /Lets in sources of other environments/)

  const asked = { ...PAY, environments: ['prod'], detail_level: 'full' }
  const { requests } = await bench.ok('create-ringfence', { ...asked, dry_run: true })
  bench.writes()
  const done = await bench.ok('create-ringfence', asked)
  t.same(
    bench.writes().map(({ body }: Json) => body),
    requests.map(({ body }: Json) => body),
    'the real call writes what was shown',
  )
  t.same(ruleOf(done), ruleOf(prodOnly))
})

t.test('what is to be left out is named exactly', async (t) => {
  const bench = await start(t, MIXED)
  const dev = (await bench.pce.labels.getAll()).find(({ value }) => value === 'dev')!.href
  const cases: [object, string[]][] = [
    [{ exclude_sources: ['crm|dev'] }, ['crm|dev']],
    [{ exclude_sources: ['crm (dev)', ' web | prod '] }, ['crm|dev', 'web|prod']],
    [{ exclude_sources: ['app=crm'] }, ['crm|dev', 'crm|prod']],
    [{ exclude_sources: ['env=dev'] }, ['crm|dev', 'erp|dev']],
    [{ exclude_sources: [dev, { app: 'web', env: 'prod' }] }, ['crm|dev', 'erp|dev', 'web|prod']],
    [{ exclude_sources: [{ key: 'env', value: 'dev' }, { href: dev }] }, ['crm|dev', 'erp|dev']],
    [{ environments: ['env=dev'] }, ['crm|prod', 'web|prod']],
    [{ environments: [{ key: 'env', value: 'prod' }] }, ['crm|dev', 'erp|dev']],
    [{ environments: [dev, 'prod'], exclude_sources: ['app=erp'] }, ['erp|dev']],
    [{ environments: ['prod'], exclude_sources: ['web|prod'] }, ['crm|dev', 'erp|dev', 'web|prod']],
  ]
  for (const [asked, left] of cases) {
    const answer = await bench.ok('create-ringfence', { ...PAY, ...asked, dry_run: true })
    const rules = ruleOf(answer)
    const { already_allowed: already, newly_allowed: newly, excluded, total_remote_apps: all } = answer.policy_coverage
    t.same([excluded, already + newly + excluded], [left.length, all], `${JSON.stringify(asked)}: not newly allowed`)
    t.same(
      Object.keys(rules).filter((source) => rules[source] === 'excluded'),
      left,
      JSON.stringify(asked),
    )
  }
  const unseen = await bench.ok('create-ringfence', { ...PAY, exclude_sources: ['a|prod', 'app=erp'], dry_run: true })
  t.match(
    text(unseen),
    /exclude_sources names what is not among the sources: "a \(prod\)"\. Left out, without a rule: "erp/,
  )

  bench.writes()
  const refused: [object, string, object][] = [
    [{ exclude_sources: ['crm|test'] }, 'not_found', { value: 'crm|test' }],
    [{ exclude_sources: ['app=cr'] }, 'not_found', { value: 'app=cr' }],
    [{ exclude_sources: ['crm'] }, 'not_found', { value: 'crm' }],
    [{ exclude_sources: ['CRM|dev'] }, 'not_found', { value: 'CRM|dev' }],
    [{ exclude_sources: ['role=db'] }, 'invalid_argument', { message: /"role=db" names none/ }],
    [
      { exclude_sources: ['a|b|prod'] },
      'invalid_argument',
      {
        candidates: [
          ['app=a', 'env=b|prod'],
          ['app=a|b', 'env=prod'],
        ],
      },
    ],
    [{ exclude_sources: [{ app: 'crm' }] }, 'not_found', {}],
    [{ environments: ['de'] }, 'not_found', { argument: 'environments', value: 'de' }],
    [{ environments: ['app=crm'] }, 'not_found', { argument: 'environments', value: 'app=crm' }],
    [{ environments: [] }, 'invalid_argument', {}],
  ]
  for (const [asked, code, details] of refused)
    for (const [tool, args] of [
      ['create-ringfence', PAY],
      ['ringfence-batch', { apps: [PAY] }],
    ] as const)
      partial(t, await bench.fails(tool, { ...args, ...asked }, code), { ...details })
  t.same(bench.writes(), [], 'nothing was written')
})

t.test('what is left out stays in by a rule that stands, and that is said', async (t) => {
  const bench = await start(t, ALREADY_ALLOWED)
  const plan = await bench.ok('create-ringfence', { ...PAY, exclude_sources: ['app=crm'], dry_run: true })
  t.same(ruleOf(plan), { 'crm|prod': 'existing' })
  t.match(text(plan), /Still let in by existing rules although left out: "crm \(prod\)" by \S+sec_rules\/1\./)
})

t.test('a batch leaves the same sources out of each of its ringfences', async (t) => {
  const bench = await start(t, {
    ...MIXED,
    flows: [...MIXED.flows!, { from: 'crm-dev', to: 'web-1' }],
  })
  const apps = [PAY, { app_name: 'web', env_name: 'prod' }]
  const whole = await bench.ok('ringfence-batch', { apps, dry_run: true })
  t.same(whole.warnings, ['Sources of other environments are let in (2 applications): "pay (prod)"; "web (prod)".'])
  const plan = await bench.ok('ringfence-batch', { apps, environments: ['prod'], dry_run: true })
  t.same(plan.warnings, [])
  t.same(
    plan.results.map(({ result }: Json) => ruleOf(result)),
    [{ 'crm|dev': 'excluded', 'crm|prod': 'new', 'erp|dev': 'excluded', 'web|prod': 'new' }, { 'crm|dev': 'excluded' }],
  )
  t.equal(plan.summary.sources_cut, 3)
})
