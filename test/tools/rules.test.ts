/** Rule sets, allow rules and deny rules, changed and deleted. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { startBench, type Bench, type Json, withoutModes } from './harness.js'

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

t.test('update-ruleset', async (t) => {
  const bench = await startBench(t)
  const { href } = await makeRuleSet(bench, 'Payments extra')

  await t.test('by exact name: replaces given fields, keeps the rest, reports previous values', async (t) => {
    const answer = await bench.ok('update-ruleset', {
      name: 'Payments extra',
      new_name: 'Payments more',
      enabled: false,
      scopes: [[{ key: 'app', value: 'payments' }], ['env=dev']],
    })
    partial(t, answer, {
      href,
      name: 'Payments more',
      enabled: false,
      scopes: [[{ key: 'app', value: 'payments' }], [{ key: 'env', value: 'dev' }]],
      updated_fields: ['name', 'enabled', 'scopes'],
      previous: { name: 'Payments extra', enabled: true },
    })
    const [write, ...more] = bench.writes()
    t.same(more, [])
    partial(t, write, { method: 'PUT', path: `/api/v2${href}` })
    t.notOk('rules' in (write?.body as object), 'the rules are not touched')
    t.equal((bench.simulator.state.find(href)?.rules as Json[]).length, 1)
  })

  await t.test('a label that does not resolve is an error: leaving it out would widen the rule set', async (t) => {
    const scoped = (scope: unknown[]) => ({ href, scopes: [scope] })
    const error = await refused(t, bench, 'update-ruleset', scoped(['app=payments', 'env=prd']), 'label_not_found')
    t.ok(error.valid_values.includes('prod'))
    await refused(t, bench, 'update-ruleset', scoped([{ key: 'app', value: 'payment' }]), 'label_not_found')
    await refused(t, bench, 'update-ruleset', scoped(['ams']), 'invalid_scope_label')
    await refused(t, bench, 'update-ruleset', scoped([{ label: 'x' }]), 'invalid_scope_label')
  })

  await t.test('requires exactly one rule set and something to change', async (t) => {
    const change = { description: 'd' }
    await refused(t, bench, 'update-ruleset', { name: 'Payments', ...change }, 'not_found')
    await refused(t, bench, 'update-ruleset', change, 'missing_identifier')
    await refused(t, bench, 'update-ruleset', { name: 'Payments more', href, ...change }, 'conflicting_identifiers')
    await refused(t, bench, 'update-ruleset', { href: `${DRAFT}/ip_lists/1`, ...change }, 'invalid_href')
    await refused(t, bench, 'update-ruleset', { href }, 'no_update_fields')
    await refused(t, bench, 'update-ruleset', { href, new_name: 'Core services' }, 'already_exists')
  })

  await t.test('warns about an empty scope; a dry run writes nothing', async (t) => {
    const answer = await bench.ok('update-ruleset', { href, scopes: [[]], dry_run: true })
    partial(t, answer, { warnings: [/all workloads/], requests: [{ method: 'PUT', body: { scopes: [[]] } }] })
    t.same(bench.writes(), [])
  })
})

t.test('delete-ruleset', async (t) => {
  const bench = await startBench(t)
  const { href } = await makeRuleSet(bench, 'Short lived')

  await t.test('never by part of a name; counts the rules deleted with it', async (t) => {
    await refused(t, bench, 'delete-ruleset', { name: 'Short' }, 'not_found')
    await refused(t, bench, 'delete-ruleset', {}, 'missing_identifier')
    await refused(t, bench, 'delete-ruleset', { href: '/orgs/1/workloads/x' }, 'invalid_href')
    const args = { href: href.replace('draft', 'active') }
    const removed = { allow: 1, deny: 1, override_deny: 1 }
    partial(t, await bench.ok('delete-ruleset', { ...args, dry_run: true }), { dry_run: true, rules_removed: removed })
    t.same(bench.writes(), [])
    partial(t, await bench.ok('delete-ruleset', args), {
      href,
      name: 'Short lived',
      rules_removed: removed,
      message: /gone/,
    })
    partial(t, bench.writes(), [{ method: 'DELETE', path: `/api/v2${href}` }])
    await bench.fails('delete-ruleset', { href }, 'not_found')
  })
})

t.test('update-sec-rule', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet, rules } = await makeRuleSet(bench, 'Allow')
  const [href = '', deny = ''] = rules

  await t.test('replaces given fields, with every form of actor and service, and shows what was stored', async (t) => {
    const answer = await bench.ok('update-sec-rule', {
      href: href.replace('draft', 'active'),
      providers: ['role=web', 'workload:none'].slice(0, 1),
      consumers: ['iplist:Branch offices', { key: 'app', value: 'payments', exclusion: true }],
      ingress_services: [{ service: 'S-HTTP' }, { port: 8000, to_port: 8010, proto: 'udp' }],
      unscoped_consumers: true,
      enabled: false,
    })
    partial(t, answer, {
      updated_fields: ['consumers', 'enabled', 'ingress_services', 'providers', 'unscoped_consumers'],
      ingress_services_resolved: [{ name: 'S-HTTP' }, { port: 8000, to_port: 8010, proto: 17 }],
      rule: {
        href,
        rule_type: 'allow',
        enabled: false,
        providers: ['role=web'],
        consumers: ['iplist:Branch offices', '!app=payments'],
        ingress_services: ['S-HTTP', { port: 8000, to_port: 8010, proto: 17 }],
        update_type: 'create',
      },
      previous: { enabled: true },
    })
    const [write, ...more] = bench.writes()
    t.same(more, [])
    partial(t, write, { method: 'PUT', path: `/api/v2${href}` })
    t.notOk('egress_services' in (write?.body as object), 'nothing that was not given is sent')
  })

  await t.test('an empty list clears egress services; the warning does not depend on other fields', async (t) => {
    const set = await bench.ok('update-sec-rule', { href, egress_services: [{ service: 'Windows Update client' }] })
    partial(t, set, {
      egress_services_resolved: [{ name: 'Windows Update client' }],
      policy_widening_warning: {
        warning: 'process_qualifier_ignored_on_non_windows',
        services: ['Windows Update client'],
      },
    })
    partial(t, await bench.ok('update-sec-rule', { href, description: 'still' }), { policy_widening_warning: {} })
    const cleared = await bench.ok('update-sec-rule', { href, egress_services: [] })
    partial(t, cleared, { updated_fields: ['egress_services'], egress_services_resolved: [] })
    t.notOk(cleared.policy_widening_warning)
    t.same(bench.simulator.state.find(href)?.egress_services, [])
  })

  await t.test('all or nothing, and the right kind of rule', async (t) => {
    const other = await refused(t, bench, 'update-sec-rule', { href: deny, enabled: false }, 'invalid_href')
    t.match(other.hint, /update-deny-rule/, 'where it is changed')
    const old = { href: href.replace('draft', '1'), enabled: false }
    partial(
      t,
      await refused(t, bench, 'update-sec-rule', old, 'invalid_href'),
      { message: /draft/ },
      'history is not changed',
    )
    await refused(t, bench, 'update-sec-rule', { href: ruleSet, enabled: false }, 'invalid_href')
    await refused(
      t,
      bench,
      'update-sec-rule',
      { href: href.replace('orgs/1', 'orgs/2'), enabled: false },
      'invalid_href',
    )
    await refused(t, bench, 'update-sec-rule', { href: `${ruleSet}/sec_rules/4711`, enabled: false }, 'not_found')
    await refused(t, bench, 'update-sec-rule', { href }, 'no_update_fields')
    const change = (args: object, code: string) => refused(t, bench, 'update-sec-rule', { href, ...args }, code)
    await change({ consumers: ['app=payments', 'app=paymentz'] }, 'label_not_found')
    await change({ consumers: ['iplist:Branch'] }, 'not_found')
    await change({ providers: ['everyone'] }, 'invalid_actor')
    await change({ ingress_services: [] }, 'invalid_ingress_services')
    await change({ ingress_services: [{ service: 'Windows Update client' }] }, 'egress_service_in_ingress')
    await change({ egress_services: [{ service: 'HTTP' }] }, 'invalid_egress_services')
    const error = await change({ ingress_services: [{ service: 'HTT' }] }, 'invalid_ingress_services')
    t.match(error.message, /^ingress_services/, 'the field is named, not the index of the only rule')
  })

  await t.test('a dry run, and a rule that already has these values', async (t) => {
    const plan = await bench.ok('update-sec-rule', { href, enabled: true, dry_run: true })
    partial(t, plan, { dry_run: true, requests: [{ method: 'PUT', path: href, body: { enabled: true } }] })
    partial(t, await bench.ok('update-sec-rule', { href, enabled: false }), { updated_fields: [] })
    t.same(bench.writes(), [])
  })
})

t.test('delete-sec-rule and delete-deny-rule', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet, rules } = await makeRuleSet(bench, 'Rules to go')
  const [allow = '', deny = '', override = ''] = rules

  await t.test('each deletes only its own kind', async (t) => {
    await refused(t, bench, 'delete-sec-rule', { href: deny }, 'invalid_href')
    await refused(t, bench, 'delete-deny-rule', { href: allow }, 'invalid_href')
    await refused(t, bench, 'delete-deny-rule', { href: ruleSet }, 'invalid_href')
    await refused(t, bench, 'delete-deny-rule', { href: `${DRAFT}/ip_lists/2` }, 'invalid_href')
  })

  await t.test('deletes one rule and keeps the others', async (t) => {
    partial(t, await bench.ok('delete-sec-rule', { href: allow, dry_run: true }), { requests: [{ path: allow }] })
    t.same(bench.writes(), [])
    partial(t, await bench.ok('delete-sec-rule', { href: allow }), { href: allow, note: /provision/ })
    const answer = await bench.ok('delete-deny-rule', { href: override.replace('draft', 'active') })
    partial(t, answer, { href: override, was_override: true })
    const left = bench.simulator.state.find(ruleSet)
    partial(t, left, { rules: [], deny_rules: [{ href: deny }] })
    await bench.fails('delete-sec-rule', { href: allow }, 'not_found')
  })
})

t.test('create-deny-rule', async (t) => {
  const bench = await startBench(t)
  const { href: ruleSet } = await makeRuleSet(bench, 'Denied')
  const rule = { providers: ['ams'], consumers: ['iplist:Internet'], ingress_services: [{ port: 23, proto: 'tcp' }] }

  await t.test('sends only what a PCE accepts in a deny rule', async (t) => {
    const answer = await bench.ok('create-deny-rule', { ruleset_name: 'Denied', ...rule, unscoped_consumers: true })
    partial(t, answer, {
      rule: { rule_type: 'deny', unscoped_consumers: true, consumers: ['iplist:Internet'], update_type: 'create' },
      ingress_services_resolved: [{ port: 23, proto: 6 }],
    })
    t.notOk(answer.override_deny_warning)
    t.ok(bench.simulator.state.find(answer.rule.href))
    const [write] = bench.writes()
    partial(t, write, {
      method: 'POST',
      path: `/api/v2${ruleSet}/deny_rules`,
      body: { enabled: true, override: false },
    })
    t.notOk('resolve_labels_as' in (write?.body as object))
  })

  await t.test('an override deny comes with its warning', async (t) => {
    const args = { ruleset_href: ruleSet.replace('draft', 'active'), ...rule, override_deny: true }
    partial(t, await bench.ok('create-deny-rule', { ...args, dry_run: true }), {
      override_deny_warning: /every allow rule/,
      requests: [{ path: `${ruleSet}/deny_rules`, body: { override: true } }],
    })
    t.same(bench.writes(), [])
    partial(t, await bench.ok('create-deny-rule', args), { rule: { rule_type: 'override_deny' } })
  })

  await t.test('a rule that the rule set has already is stored with a warning', async (t) => {
    const args = { ruleset_name: 'Denied', ...rule, ingress_services: [{ port: 24, proto: 'tcp' }] }
    const wide = (text: string) =>
      text.startsWith('The consumers are any address in effect: "Internet" has 93.3 % of IPv4')
    const told = (warnings?: string[]) => withoutModes(warnings).filter((text) => !wide(text))
    const warningsOf = async (more: object = {}) =>
      told((await bench.ok('create-deny-rule', { ...args, ...more })).warnings)
    const { href } = (await bench.ok('create-deny-rule', args)).rule
    const same = [`The rule set already has this rule, ${href}: a second one changes nothing.`]
    t.same(await warningsOf({ dry_run: true }), same)
    t.same(await warningsOf({ dry_run: true, description: 'INC-7' }), same, 'whatever it is for')
    for (const more of [{ override_deny: true }, { ingress_services: [{ port: 24, to_port: 25, proto: 'tcp' }] }])
      t.same(await warningsOf({ ...more, dry_run: true }), [], JSON.stringify(more))
    for (const more of [{ unscoped_consumers: true }, { providers: ['app=payments'] }])
      t.same(
        await warningsOf({ ...more, dry_run: true }),
        [
          `The deny rule ${href} (not provisioned yet) of the rule set "Denied" is the same rule: a second one changes nothing.`,
        ],
        `other words for the same: ${JSON.stringify(more)}`,
      )
    await bench.ok('update-deny-rule', { href, enabled: false })
    t.same(await warningsOf({ dry_run: true }), [
      `The rule set already has this rule, but disabled: ${href}. Enable it instead of adding a second one.`,
    ])
    await bench.ok('update-deny-rule', { href, enabled: true })
    const { rule: second, warnings } = await bench.ok('create-deny-rule', args)
    t.same(told(warnings), same)
    t.not(second.href, href)
    const change = { href: second.href, ingress_services: [{ port: 26, proto: 'tcp' }] }
    t.same(told((await bench.ok('update-deny-rule', change)).warnings), [])
    const back = { href: second.href, ingress_services: args.ingress_services }
    t.same(told((await bench.ok('update-deny-rule', back)).warnings), same, 'a change can make it the same')
    t.equal((await bench.ok('update-deny-rule', { href, description: 'x' })).warnings, undefined, 'or leave it')
    const twice = await bench.ok('create-ruleset', {
      name: 'Twice',
      scopes: [[]],
      rules: [web, { ...web, rule_type: 'deny' }, { ...web, description: 'again' }],
      dry_run: true,
    })
    t.same(withoutModes(twice.warnings), [
      'The scope is empty: the rule set covers all workloads.',
      'Rule 2 says the same as rule 0: a second one changes nothing.',
      'Rule 1: It blocks nothing: rule 0 of this call decides all of it, which comes first.',
    ])
    await bench.ok('delete-deny-rule', { href })
    await bench.ok('delete-deny-rule', { href: second.href })
    bench.writes()
  })

  await t.test('nothing is written unless everything resolves', async (t) => {
    const deny = (args: object, code: string) => refused(t, bench, 'create-deny-rule', { ...rule, ...args }, code)
    await deny({}, 'missing_identifier')
    await deny({ ruleset_name: 'Deni' }, 'not_found')
    await deny({ ruleset_name: 'Denied', ruleset_href: ruleSet }, 'conflicting_identifiers')
    await deny({ ruleset_href: `${DRAFT}/services/1` }, 'invalid_href')
    await deny({ ruleset_name: 'Denied', consumers: ['nobody'] }, 'invalid_actor')
    await deny({ ruleset_name: 'Denied', ingress_services: [] }, 'invalid_ingress_services')
    const error = await deny(
      { ruleset_name: 'Denied', ingress_services: [{ service: 'IIS worker' }] },
      'process_qualified_deny_unsupported',
    )
    partial(t, error.services, [{ name: 'IIS worker' }])
  })
})

t.test('update-deny-rule', async (t) => {
  const bench = await startBench(t)
  const { rules } = await makeRuleSet(bench, 'Denied too')
  const [allow = '', deny = '', override = ''] = rules

  await t.test('changes given fields and shows the rule', async (t) => {
    const answer = await bench.ok('update-deny-rule', {
      href: deny,
      consumers: [`${DRAFT}/ip_lists/2`],
      ingress_services: { service: 'SSH' },
    })
    partial(t, answer, {
      updated_fields: ['consumers', 'ingress_services'],
      rule: { rule_type: 'deny', consumers: ['iplist:Internet'] },
      ingress_services_resolved: [{ name: 'SSH' }],
    })
    partial(t, bench.writes(), [{ method: 'PUT', body: { consumers: [{ ip_list: { href: `${DRAFT}/ip_lists/2` } }] } }])
    partial(t, await bench.ok('update-deny-rule', { href: override, enabled: false }), {
      rule: { rule_type: 'override_deny' },
    })
  })

  await t.test('an IP list that does not exist is an error, never dropped', async (t) => {
    await refused(t, bench, 'update-deny-rule', { href: deny, consumers: ['iplist:Intranet'] }, 'not_found')
    await refused(t, bench, 'update-deny-rule', { href: deny, providers: ['app=nope'] }, 'label_not_found')
    await refused(t, bench, 'update-deny-rule', { href: allow, enabled: true }, 'invalid_href')
    await refused(t, bench, 'update-deny-rule', { href: deny }, 'no_update_fields')
    const windows = { href: deny, ingress_services: [{ service: 'Print spooler' }] }
    await refused(t, bench, 'update-deny-rule', windows, 'process_qualified_deny_unsupported')
    await refused(t, bench, 'update-deny-rule', { href: deny, egress_services: [] }, 'invalid_argument')
  })

  await t.test('a PCE refusal keeps its token', async (t) => {
    bench.simulator.faults.add({
      kind: 'status',
      path: deny,
      method: 'PUT',
      times: 1,
      status: 406,
      body: [{ token: 'no_such_thing', message: 'No.' }],
    })
    partial(t, await bench.fails('update-deny-rule', { href: deny, enabled: false }, 'pce_error'), {
      token: 'no_such_thing',
    })
  })
})
