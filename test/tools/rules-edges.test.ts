/** Allow and deny rules where it gets narrow: what is left out, what fails afterwards, what waits for its deletion. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { NOW, startBench, type Bench, type Json, withoutModes } from './harness.js'

const DRAFT = '/orgs/1/sec_policy/draft'

async function refused(t: Test, bench: Bench, tool: string, args: object, code: string): Promise<Json> {
  bench.writes()
  const error = await bench.fails(tool, args, code)
  t.same(bench.writes(), [], 'nothing was written')
  return error
}

const web = { providers: ['ams'], consumers: ['app=payments'], ingress_services: [{ port: 443, proto: 'tcp' }] }

/** A rule set of one allow, one deny and one override-deny rule. */
async function makeRuleSet(bench: Bench, name: string): Promise<{ href: string; rules: string[] }> {
  const { ruleset } = await bench.ok('create-ruleset', {
    name,
    scopes: [['app=payments', 'env=prod']],
    rules: [
      web,
      { ...web, rule_type: 'deny', unscoped_consumers: true },
      { ...web, rule_type: 'override_deny', consumers: ['iplist:Internet'], unscoped_consumers: true },
    ],
  })
  bench.writes()
  return { href: ruleset.href, rules: ruleset.rules.map(({ href }: Json) => href) }
}

t.test('leaving something out of an actor is a change too', async (t) => {
  const bench = await startBench(t)
  const { rules } = await makeRuleSet(bench, 'Excluding')
  const { href: group } = await bench.pce.labelGroups.create({ key: 'env', name: 'Nonprod', labels: [] })
  const [allow = '', deny = ''] = rules
  for (const [tool, href] of [
    ['update-sec-rule', allow],
    ['update-deny-rule', deny],
  ] as const) {
    const all = { href, consumers: ['app=payments', { href: group, exclusion: true }] }
    partial(t, await bench.ok(tool, all), { updated_fields: ['consumers'] })
    bench.writes()
    partial(t, await bench.ok(tool, { ...all, consumers: [...all.consumers].reverse() }), { updated_fields: [] })
    t.same(bench.writes(), [], 'another order is no change')
    const without = await bench.ok(tool, { href, consumers: ['labelgroup:Nonprod', 'app=payments'] })
    partial(t, without, { updated_fields: ['consumers'] }, `${tool}: the exclusion ends`)
    t.same(
      without.rule.consumers.map(({ exclusion }: Json) => exclusion),
      [undefined, undefined],
    )
  }
  await t.test('in a scope as well', async (t) => {
    const args = { name: 'Excluding', scopes: [['app=payments', { key: 'env', value: 'dev', exclusion: true }]] }
    partial(t, await bench.ok('update-ruleset', args), {
      scopes: [[{ key: 'app', value: 'payments' }, { exclusion: true }]],
    })
    const answer = await bench.ok('update-ruleset', { name: 'Excluding', scopes: [['app=payments', 'env=dev']] })
    partial(t, answer, { updated_fields: ['scopes'], previous: { scopes: [['app=payments', '!env=dev']] } })
  })
  await t.test('clearing something empty is not a change', async (t) => {
    bench.writes()
    partial(t, await bench.ok('update-sec-rule', { href: allow, egress_services: [] }), { updated_fields: [] })
    t.same(bench.writes(), [])
  })
})

t.test('reports what was written, whatever fails afterwards', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet, rules } = await makeRuleSet(bench, 'Unlucky')
  const [allow = '', deny = ''] = rules
  const services = { path: `${DRAFT}/services`, method: 'GET', times: 1, kind: 'status', status: 403 } as const
  const broken = { ...services, status: 503, times: 20 }
  const ssh = `${DRAFT}/services/6`

  await t.test('shows a rule by hrefs if names cannot be read', async (t) => {
    // The services are looked up one by one before the write, and listed after it.
    for (const [tool, args] of [
      ['update-sec-rule', { href: allow, ingress_services: { href: ssh } }],
      ['update-deny-rule', { href: deny, ingress_services: { href: ssh } }],
      [
        'create-deny-rule',
        { ruleset_href: ruleSet, providers: ['ams'], consumers: ['ams'], ingress_services: { href: ssh } },
      ],
    ] as const) {
      bench.writes()
      bench.simulator.faults.add({ ...broken, path: /\/draft\/services$/ })
      const answer = await bench.ok(tool, args)
      bench.simulator.faults.clear()
      partial(t, answer, { rule: { ingress_services: [{ href: ssh }] } }, tool)
      t.equal(bench.writes().length, 1)
    }
  })

  await t.test('a rule set too', async (t) => {
    const { href: group } = await bench.pce.labelGroups.create({ key: 'env', name: 'Test stages', labels: [] })
    bench.simulator.faults.add({ ...broken, path: /\/draft\/label_groups$/ })
    const answer = await bench.ok('update-ruleset', { href: ruleSet, scopes: [['app=payments', { href: group }]] })
    bench.simulator.faults.clear()
    partial(t, answer, {
      updated_fields: ['scopes'],
      scopes: [
        [
          { key: 'app', value: 'payments' },
          { href: group, name: 'Test stages' },
        ],
      ],
    })
  })

  await t.test('reports a rule that cannot be read back', async (t) => {
    bench.simulator.faults.add({ ...services, path: /\/deny_rules\/\d+$/ })
    const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 23, proto: 'tcp' }] }
    const answer = await bench.ok('create-deny-rule', { ruleset_href: ruleSet, ...rule })
    partial(t, answer, { message: /Added/, rule: { rule_type: 'deny' } })
    partial(t, withoutModes(answer.warnings), [
      /^Whether other rules decide all of this already is undecided/,
      /could not be read back/,
    ])
  })

  await t.test('reports a rule stored differently from what was sent', async (t) => {
    const [href] = (bench.simulator.state.find(ruleSet)?.deny_rules as Json[]).map((rule) => rule.href)
    const stored = { ...bench.simulator.state.find(href), override: false, unscoped_consumers: false }
    bench.simulator.faults.add({ ...services, path: /\/deny_rules\/\d+$/, status: 200, body: stored })
    const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }
    const args = { ruleset_href: ruleSet, ...rule, unscoped_consumers: true, override_deny: true }
    const { differences } = await bench.ok('create-deny-rule', args)
    t.ok(differences.some(({ field, sent }: Json) => field === 'override' && sent === true))
    t.ok(differences.some(({ field }: Json) => field === 'unscoped_consumers'))
  })

  await t.test('a creation without an answer may have happened, and is sent once', async (t) => {
    bench.simulator.faults.add({ kind: 'commit-then-drop', path: `${ruleSet}/deny_rules`, method: 'POST', times: 1 })
    bench.writes()
    const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 24, proto: 'tcp' }] }
    await bench.fails('create-deny-rule', { ruleset_href: ruleSet, ...rule }, 'outcome_unknown')
    t.equal(bench.writes().length, 1)
  })

  await t.test('reports a deletion without an answer as done', async (t) => {
    bench.simulator.faults.add({ kind: 'commit-then-drop', path: allow, method: 'DELETE', times: 1 })
    partial(t, await bench.ok('delete-sec-rule', { href: allow }), { href: allow, message: /Deleted/ })
  })
})

t.test('a server that stops between two rules rolls the rule set back', async (t) => {
  let watch = (): void => undefined
  const bench = await startBench(t, {
    workloads: 20,
    flows: 20,
    now() {
      watch()
      return NOW
    },
  })
  watch = () => {
    const last = bench.simulator.requests.at(-1)
    if (last?.method === 'POST' && last.path.endsWith('/sec_rules')) bench.stop()
  }
  const rules = [web, { ...web, rule_type: 'deny' }]
  const error = await bench.fails('create-ruleset', { name: 'Half', scopes: [['app=payments']], rules }, 'cancelled')
  t.equal(error.rolled_back, true)
  t.same(
    bench.writes().map(({ method, path }) => `${method} ${path.split('/').at(-1)}`),
    ['POST rule_sets', 'POST sec_rules', `DELETE ${bench.simulator.requests.at(-1)?.path.split('/').at(-1)}`],
  )
})

t.test('a rule set marked for deletion', async (t) => {
  const bench = await startBench(t)
  const { href, rules } = await makeRuleSet(bench, 'Ending')
  const [allow = '', deny = ''] = rules
  const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 23, proto: 'tcp' }] }
  const add = { ruleset_href: href, ...rule }
  partial(t, await bench.ok('update-sec-rule', { href: allow, description: 'x' }), { message: /takes effect/ })
  partial(t, await bench.ok('create-deny-rule', add), { message: /takes effect/ })
  await bench.pce.provisionPolicyChanges('for a while', [href])
  partial(t, await bench.ok('delete-ruleset', { href }), { message: /stays in force until/ })
  bench.writes()
  partial(t, await bench.ok('delete-ruleset', { href, dry_run: true }), { requests: [], message: /pending/ })
  for (const [tool, args] of [
    ['update-sec-rule', { href: allow, description: 'y' }],
    ['update-deny-rule', { href: deny, description: 'y' }],
    ['create-deny-rule', add],
  ] as const) {
    partial(t, withoutModes((await bench.ok(tool, { ...args, dry_run: true })).warnings), [/deletion/], tool)
    t.same(bench.writes(), [])
    const answer = await bench.ok(tool, args)
    partial(t, withoutModes(answer.warnings), [/deletion/])
    t.notMatch(answer.message, /takes effect/)
    bench.writes()
  }
})

t.test('deny rules: allowed ends and services', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet, rules } = await makeRuleSet(bench, 'Ends')
  const deny = rules[1] ?? ''
  const { items } = await bench.pce.virtualServices.getPage('draft')
  const virtual = { consumers: [items[0]?.href ?? ''] }
  const { href: legacy } = await bench.pce.services.create({
    name: 'Old style',
    process_name: 'legacy.exe',
    service_ports: [{ port: 81, proto: 6 }],
  })
  const { href: mixed } = await bench.pce.services.create({
    name: 'Half named',
    windows_services: [{ process_name: '', service_name: 'W3SVC', port: 80, proto: 6 }],
  })
  const base = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 23, proto: 'tcp' }] }
  const both = async (args: object, code: string) => {
    await refused(t, bench, 'create-deny-rule', { ruleset_href: ruleSet, ...base, ...args }, code)
    return refused(t, bench, 'update-deny-rule', { href: deny, ...args }, code)
  }
  await both(virtual, 'invalid_actor')
  await both({ providers: [{ href: `${DRAFT}/ip_lists/2`, exclusion: true }] }, 'invalid_actor')
  await both({ providers: ['/orgs/2/labels/1'] }, 'label_not_found')
  await both({ providers: [`${DRAFT}/services/6`] }, 'invalid_actor')
  for (const href of [legacy, mixed, `${DRAFT}/services/29`.replace('draft', 'active')]) {
    partial(t, await both({ ingress_services: [{ href }] }, 'process_qualified_deny_unsupported'), { services: [{}] })
  }
  await both({ ingress_services: [{ port: 0, proto: 'tcp' }] }, 'invalid_ingress_services')
  await both({ ingress_services: [{ port: 80 }] }, 'invalid_ingress_services')
  await both({ ingress_services: [{ port: 80, proto: 'icmp' }] }, 'invalid_ingress_services')
  await both({ ingress_services: [{ port: 80, proto: 6, service: 'SSH' }] }, 'invalid_ingress_services')
  const [workload] = (await bench.pce.workloads.getPage('draft', null, { params: { max_results: 1 } })).items as Json
  partial(
    t,
    await bench.ok('update-deny-rule', {
      href: deny,
      providers: [workload.href, { key: 'env', value: 'prod', exclusion: true }],
      ingress_services: [{ port: 80, to_port: 80, proto: 'TCP' }, 'SSH'],
      unscoped_consumers: false,
    }),
    {
      rule: {
        providers: [{ type: 'workload', href: workload.href }, '!env=prod'],
        ingress_services: [{ port: 80, proto: 6 }, 'SSH'],
        unscoped_consumers: false,
      },
      previous: { unscoped_consumers: true },
    },
  )
})

t.test('a virtual server can only be a provider', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet, rules } = await makeRuleSet(bench, 'Balanced')
  const [allow = '', deny = ''] = rules
  const [discovered] = await bench.pce.discoveredVirtualServers.getAll()
  const { href } = await bench.pce.virtualServers.create({
    name: 'front door',
    mode: 'unmanaged',
    labels: [],
    providers: [],
    service: { href: `${DRAFT}/services/6` },
    discovered_virtual_server: { href: discovered?.href },
  })
  await refused(t, bench, 'update-sec-rule', { href: allow, consumers: [href] }, 'invalid_actor')
  await refused(t, bench, 'update-deny-rule', { href: deny, providers: [href] }, 'invalid_actor')
  const ends = { ...web, ruleset_href: ruleSet, consumers: [href] }
  await refused(t, bench, 'create-deny-rule', ends, 'invalid_actor')
  const { rule } = await bench.ok('update-sec-rule', { href: allow, providers: [href] })
  t.same(
    rule.providers.map((one: Json) => [one.type, one.href]),
    [['virtual_server', href]],
  )
})

t.test('counts what is deleted with a rule set only if known', async (t) => {
  const bench = await startBench(t)
  const { href } = await makeRuleSet(bench, 'Older PCE')
  const { deny_rules: _absent, ...older } = (await bench.pce.ruleSets.getByReference(href)) as Json
  bench.simulator.faults.add(
    { kind: 'status', path: new RegExp(`${href}$`), method: 'GET', times: 1, status: 200, body: older },
    { kind: 'status', path: `${href}/deny_rules`, method: 'GET', times: 1, status: 403 },
  )
  const answer = await bench.ok('delete-ruleset', { href, dry_run: true })
  t.same(answer.rules_removed, { allow: 1 })
  partial(t, answer.warnings, [/could not be counted/])
})

t.test('omitting scopes changes nothing and never means everything', async (t) => {
  const bench = await startBench(t)
  const { href } = await makeRuleSet(bench, 'Scoped')
  await refused(t, bench, 'update-ruleset', { href, scopes: [] }, 'invalid_argument')
  partial(t, await bench.ok('update-ruleset', { href, scopes: [[]] }), { scopes: [[]], warnings: [/all workloads/] })
})

t.test('the widening warning judges the resulting rule', async (t) => {
  const bench = await startBench(t)
  const { rules } = await makeRuleSet(bench, 'Widening')
  const [href = ''] = rules
  const count = async (args: object) =>
    (await bench.ok('update-sec-rule', { href, ...args })).policy_widening_warning?.non_windows_consumer_count
  const outbound = { consumers: ['ams'], egress_services: [{ service: 'Windows Update client' }] }
  const everywhere = await count({ ...outbound, unscoped_consumers: true })
  t.equal(await count({ description: 'as before' }), everywhere, 'whether or not the change concerns it')
  const inScope = await count({ unscoped_consumers: false })
  t.ok(inScope < everywhere, `${inScope} of ${everywhere}`)
  t.equal(await count({ consumers: ['iplist:Internet'] }), 0, 'addresses are no workloads, and warned of all the same')
})
