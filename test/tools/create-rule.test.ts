/** create-rule: one rule in a rule set that exists, by the references and with the refusals of create-ruleset and create-deny-rule. */
import t, { type Test } from 'tap'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json, withoutModes } from './harness.js'

const AT = '/orgs/1/sec_policy/draft'

const start = (t: Test) =>
  startBench(t, {
    estate: handMade({
      hosts: {
        web: { ip: '10.0.0.1', labels: 'role=web app=shop env=prod' },
        win: { ip: '10.0.0.2', labels: 'role=app app=shop env=prod', os: 'win-x86_64-server' },
        lin: { ip: '10.0.0.3', labels: 'role=app app=shop env=prod' },
      },
      ipLists: { Office: ['10.9.0.0/16'] },
      services: {
        Web: { service_ports: [{ port: 443, proto: 6 }] },
        Updater: { windows_egress_services: [{ process_name: 'c:\\u.exe' }] },
        Twin: { service_ports: [{ port: 1, proto: 6 }] },
      },
      ruleSets: [
        { name: 'Shop', scope: 'app=shop env=prod', allow: [{ from: 'role=app', to: 'role=web', services: ['Web'] }] },
        { name: 'Shop test', scope: 'app=shop' },
      ],
    }),
  })

const SHOP = { ruleset_name: 'Shop' }
const RULE = {
  providers: ['role=web'],
  consumers: [{ key: 'role', value: 'app' }],
  ingress_services: [{ port: 8443, proto: 'tcp' }],
}

/** The rules of Shop in the draft, by the words of get-rulesets. */
const rulesOf = async (bench: Bench): Promise<Json[]> =>
  (await bench.ok('get-rulesets', { name: 'Shop', exact: true })).rulesets[0].rules

t.test('each rule type is added to its own collection, and read back in the words of callers', async (t) => {
  const bench = await start(t)
  bench.writes()
  const allow = await bench.ok('create-rule', { ...SHOP, ...RULE, description: 'To the API', unscoped_consumers: true })
  t.same(allow, {
    message: 'Added the allow rule to the rule set "Shop" in draft. It takes effect when provisioned.',
    rule: {
      rule_type: 'allow',
      href: `${AT}/rule_sets/1/sec_rules/${allow.rule.href.split('/').at(-1)}`,
      enabled: true,
      consumers: ['role=app'],
      providers: ['role=web'],
      ingress_services: [{ port: 8443, proto: 6 }],
      unscoped_consumers: true,
      update_type: 'create',
      description: 'To the API',
    },
    ingress_services_resolved: [{ port: 8443, proto: 6 }],
  })
  const asText = await bench.ok('create-rule', { ...SHOP, ...RULE, ingress_services: '8443/tcp', dry_run: true })
  t.same(asText.ingress_services_resolved, [{ port: 8443, proto: 6 }], 'ports as answers show them')
  const [sent, ...more] = bench.writes()
  t.same(more, [], 'one write')
  partial(t, sent, { method: 'POST', path: `/api/v2${AT}/rule_sets/1/sec_rules` })
  t.same(Object.keys((sent?.body as Json).resolve_labels_as), ['providers', 'consumers'])

  const deny = await bench.ok('create-rule', {
    ruleset_href: '/orgs/1/sec_policy/active/rule_sets/1',
    ...RULE,
    consumers: ['iplist:Office'],
    rule_type: 'deny',
  })
  partial(t, deny, { message: /^Added the deny rule/, rule: { rule_type: 'deny', consumers: ['iplist:Office'] } })
  t.notOk('override_deny_warning' in deny)
  partial(t, bench.writes(), [{ path: `/api/v2${AT}/rule_sets/1/deny_rules`, body: { override: false } }])

  const override = await bench.ok('create-rule', { ...SHOP, ...RULE, consumers: ['ams'], rule_type: 'override_deny' })
  partial(t, override, {
    message: /^Added the override deny rule/,
    rule: { rule_type: 'override_deny', consumers: ['ams'] },
    override_deny_warning: /beats every allow/,
  })
  t.same(
    (await rulesOf(bench)).map(({ rule_type: type }) => type),
    ['allow', 'allow', 'deny', 'override_deny'],
    'beside those that were there',
  )
})

t.test('the arguments of a rule are those of create-ruleset, beside its end', async (t) => {
  const properties = (name: string) => tools.find((tool) => tool.name === name)!.input.properties as Json
  const { ruleset_href: _href, ruleset_name: _name, dry_run: _dry, expires: _end, ...own } = properties('create-rule')
  t.same(own, properties('create-ruleset').rules.items.properties)
})

t.test('what cannot be a rule is refused as in create-ruleset, before anything is written', async (t) => {
  const bench = await start(t)
  bench.writes()
  for (const [args, code, facts] of [
    [RULE, 'missing_identifier', { arguments: ['ruleset_href', 'ruleset_name'] }],
    [{ ...SHOP, ruleset_href: `${AT}/rule_sets/1`, ...RULE }, 'conflicting_identifiers', {}],
    [{ ruleset_name: 'Sho', ...RULE }, 'not_found', { near_names: ['Shop', 'Shop test'] }],
    [{ ruleset_href: `${AT}/ip_lists/2`, ...RULE }, 'invalid_href', {}],
    [{ ...SHOP, ...RULE, providers: ['role=wep'] }, 'label_not_found', { side: 'providers', message: /role=web/ }],
    [{ ...SHOP, ...RULE, consumers: ['web'] }, 'invalid_actor', { side: 'consumers', message: /role=web/ }],
    [{ ...SHOP, ...RULE, providers: ['lin'] }, 'invalid_actor', { message: / Write "workload:lin"\.$/ }],
    [{ ...SHOP, ...RULE, consumers: ['Office'] }, 'invalid_actor', { message: / Write "iplist:Office"\.$/ }],
    [{ ...SHOP, ...RULE, ingress_services: ['443'] }, 'invalid_ingress_services', { message: /"443\/tcp"/ }],
    [{ ...SHOP, ...RULE, consumers: ['iplist:Offices'] }, 'not_found', { near_names: ['Office'], side: 'consumers' }],
    [{ ...SHOP, ...RULE, ingress_services: [] }, 'invalid_ingress_services', {}],
    [{ ...SHOP, ...RULE, ingress_services: [{ port: 443 }] }, 'invalid_ingress_services', { message: /proto/ }],
    [{ ...SHOP, ...RULE, ingress_services: 'Wep' }, 'invalid_ingress_services', { reason: 'not_found' }],
    [{ ...SHOP, ...RULE, ingress_services: ['Updater'] }, 'egress_service_in_ingress', {}],
    [{ ...SHOP, ...RULE, egress_services: ['Web'] }, 'invalid_egress_services', {}],
    [{ ...SHOP, ...RULE, egress_services: ['Updater'], rule_type: 'deny' }, 'process_qualified_deny_unsupported', {}],
    [{ ...SHOP, ...RULE, rule_type: 'block' }, 'invalid_argument', {}],
    [{ ...SHOP, ...RULE, enabled: false }, 'invalid_argument', {}],
  ] as const) {
    const error = await bench.fails('create-rule', args, code)
    partial(t, error, facts)
    t.notOk('rule_index' in error, 'it is the one rule of the call')
  }
  t.same(bench.writes(), [])
  t.equal((await rulesOf(bench)).length, 1)
})

t.test('warnings: a repetition, a rule set that goes, programs that some consumers cannot check', async (t) => {
  const bench = await start(t)
  const same = { ...SHOP, ...RULE, ingress_services: ['Web'] }
  partial(t, await bench.ok('create-rule', { ...same, dry_run: true }), {
    warnings: [/already has this rule, .*sec_rules\/1: a second one changes nothing/],
  })
  t.same(withoutModes((await bench.ok('create-rule', { ...same, rule_type: 'deny', dry_run: true })).warnings), [
    'It blocks nothing: the allow rule /orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1 of the rule set "Shop" decides all of it, which comes first.',
  ])
  partial(t, await bench.ok('create-rule', { ...SHOP, ...RULE, egress_services: ['Updater'], dry_run: true }), {
    egress_services_resolved: [{ name: 'Updater' }],
    policy_widening_warning: { non_windows_consumer_count: 1, examples: ['lin'] },
  })
  await bench.ok('delete-ruleset', { name: 'Shop test' })
  const { message, warnings } = await bench.ok('create-rule', { ruleset_name: 'Shop test', ...RULE })
  partial(t, warnings, [/marked for deletion/])
  t.notMatch(message, /takes effect/)
})

t.test('a warning where a rule names nobody', async (t) => {
  const bench = await start(t)
  await bench.ok('create-label', { key: 'app', value: 'pay' })
  const web = { ...RULE, consumers: ['app=pay'] }
  const warning =
    'The rule names nobody: its consumers have "app=pay", and the scope "app=shop". Did you mean unscoped_consumers: true?'
  bench.simulator.clearRequests()
  t.same((await bench.ok('create-rule', { ...SHOP, ...web, dry_run: true })).warnings, [warning])
  const asked = bench.simulator.requests.length
  await bench.ok('create-rule', { ...SHOP, ...RULE, consumers: ['app=shop'], dry_run: true })
  t.equal(bench.simulator.requests.length, 2 * asked, 'for which nothing more is read')
  const nobody = await bench.ok('create-rule', { ...SHOP, ...web })
  t.same(nobody.warnings, [warning])
  const report = await bench.ok('find-redundant-rules', { policy_version: 'draft' })
  t.same(
    report.findings.map(({ kind, href }: Json) => [kind, href]),
    [['names_nobody', nobody.rule.href]],
    'as is found afterwards',
  )
  for (const fine of [
    { ...web, unscoped_consumers: true },
    { ...web, consumers: ['app=pay', 'app=shop'] },
    { ...web, consumers: ['ams'] },
    { ...web, consumers: ['iplist:Office'] },
    { ...web, consumers: ['role=app'] },
    { ...web, consumers: [{ key: 'app', value: 'pay', exclusion: true }, 'ams'] },
  ])
    t.notOk('warnings' in (await bench.ok('create-rule', { ...SHOP, ...fine, dry_run: true })), JSON.stringify(fine))
  const providers = await bench.ok('create-deny-rule', { ...SHOP, ...RULE, providers: ['app=pay'], dry_run: true })
  t.same(withoutModes(providers.warnings), [
    'The rule names nobody: its providers have "app=pay", and the scope "app=shop". Providers are always within the scope.',
  ])
  const both = (scopes: string[][]) =>
    bench.ok('create-ruleset', { name: 'New', scopes, rules: [RULE, web], dry_run: true })
  t.same((await both([['app=shop'], ['env=prod', 'app=shop']])).warnings, [
    'Rule 1: The rule names nobody: its consumers have "app=pay", and every scope, such as "app=shop". Did you mean unscoped_consumers: true?',
  ])
  t.notOk('warnings' in (await both([['app=shop'], ['env=prod']])), 'one scope is enough to be in')
})

t.test('a dry run shows the request, sends none, and is what a real call sends', async (t) => {
  const bench = await start(t)
  bench.writes()
  const args = { ...SHOP, ...RULE, rule_type: 'override_deny' }
  const plan = await bench.ok('create-rule', { ...args, dry_run: true })
  t.same(bench.writes(), [])
  partial(t, plan, { dry_run: true, message: 'Would add the override deny rule to the rule set "Shop".' })
  await bench.ok('create-rule', args)
  const [sent] = bench.writes()
  t.same(plan.requests, [{ method: sent!.method, path: sent!.path.replace('/api/v2', ''), body: sent!.body }])
})

t.test('what the PCE stores differently is told, and so is what cannot be read back', async (t) => {
  const bench = await start(t)
  const read = bench.pce.rules.getByReference.bind(bench.pce.rules)
  bench.pce.rules.getByReference = async (...args) => ({ ...(await read(...args)), unscoped_consumers: true })
  partial(t, await bench.ok('create-rule', { ...SHOP, ...RULE }), {
    rule: { unscoped_consumers: true },
    differences: [{ field: 'unscoped_consumers', sent: false, stored: true }],
  })
  bench.pce.rules.getByReference = () => Promise.reject(new Error('gone'))
  partial(t, await bench.ok('create-rule', { ...SHOP, ...RULE, ingress_services: ['Twin'] }), {
    rule: { ingress_services: ['Twin'] },
    warnings: [/could not be read back/],
  })
})

t.test('a rule that is to be deleted is no repetition', async (t) => {
  const bench = await start(t)
  await bench.ok('delete-sec-rule', { href: `${AT}/rule_sets/1/sec_rules/1` })
  const plan = await bench.ok('create-rule', { ...SHOP, ...RULE, ingress_services: ['Web'], dry_run: true })
  t.notOk('warnings' in plan)
})

t.test('it sends no more requests than it says', async (t) => {
  const bench = await start(t)
  bench.simulator.clearRequests()
  await bench.ok('create-rule', {
    ...SHOP,
    ...RULE,
    consumers: ['iplist:Office', 'workload:lin'],
    ingress_services: 'Web',
  })
  const named = 3
  const most = tools.find(({ name }) => name === 'create-rule')!.pceRequests!.atMost + 2 * named
  t.ok(bench.simulator.requests.length <= most, `${bench.simulator.requests.length} of ${most}`)
})

t.test('a rule whose answer is lost is looked for in its rule set', async (t) => {
  const bench = await start(t)
  const kinds = [
    { tool: 'create-rule', args: RULE, collection: 'sec_rules' },
    { tool: 'create-rule', args: { ...RULE, rule_type: 'override_deny' }, collection: 'deny_rules' },
    { tool: 'create-deny-rule', args: RULE, collection: 'deny_rules' },
  ]
  const path = `${AT}/rule_sets/1`
  /** The state keeps allow rules under another name than their collection. */
  const namesOf = (collection: string) => {
    const ruleSet = bench.simulator.state.find(path)!
    return ((ruleSet[collection === 'sec_rules' ? 'rules' : collection] ?? []) as Json[]).map(({ href }) => href)
  }
  for (const { tool, args, collection } of kinds) {
    const lost = { kind: 'commit-then-drop', path: `${path}/${collection}`, method: 'POST', times: 1 } as const
    const before = namesOf(collection)
    bench.simulator.faults.add(lost)
    bench.writes()
    const error = await bench.fails(tool, { ...SHOP, ...args }, 'outcome_unknown')
    t.equal(bench.writes().length, 1, 'it is sent once')
    const added = namesOf(collection).filter((href) => !before.includes(href))
    t.equal(added.length, 1)
    partial(t, error, { read_back: { state: 'as_sent', hrefs: added }, hint: /^Read back, .* the rule was added\.$/ })

    bench.simulator.faults.add({ kind: 'status', path: `${path}/${collection}`, method: 'POST', times: 1, status: 500 })
    const refused = await bench.fails(tool, { ...SHOP, ...args }, 'outcome_unknown')
    partial(
      t,
      refused,
      { read_back: { state: 'absent' }, hint: /nothing was added so far/ },
      'the twin was there before',
    )

    bench.simulator.faults.add(lost, { kind: 'status', path, method: 'GET', times: 9, status: 403 })
    const unread = await bench.fails(tool, { ...SHOP, ...args }, 'outcome_unknown')
    bench.simulator.faults.clear()
    partial(t, unread, { read_back: { state: 'unreadable' }, hint: /before repeating the call/ })

    bench.simulator.faults.add({ kind: 'truncate', path: `${path}/${collection}`, method: 'POST', times: 1 })
    const accepted = await bench.ok(tool, { ...SHOP, ...args })
    t.equal(accepted.rule.href, namesOf(collection).at(-1), 'a 2xx that cannot be read is a rule that was added')
  }
})
