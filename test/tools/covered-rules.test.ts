/** A rule that others decide already is warned of before it is written, whichever rule set they are in. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench } from './harness.js'

const estate = handMade({
  hosts: {
    'pay-1': { ip: '10.1.0.1', labels: 'app=pay env=prod role=db', mode: 'full' },
    'shop-1': { ip: '10.1.0.2', labels: 'app=shop env=prod', mode: 'full' },
  },
  ruleSets: [
    {
      name: 'Everywhere',
      scope: '',
      allow: [
        { from: 'env=prod', to: 'app=pay', services: [{ port: 400, to_port: 500, proto: 6 }], extra: true },
        { from: 'ams', to: 'ams', services: [{ port: 22, proto: 6 }], enabled: false },
      ],
      deny: [{ from: 'any', to: 'ams', services: [{ port: 23, proto: 6 }] }],
      override: [{ from: 'ams', to: 'ams', services: [{ port: 3389, proto: 6 }], extra: true }],
    },
    { name: 'Pay', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams', services: [{ port: 80, proto: 6 }] }] },
    { name: 'Shop', scope: 'app=shop env=prod', allow: [{ from: 'ams', to: 'ams' }] },
  ],
})
const DRAFT = '/orgs/1/sec_policy/draft/rule_sets'
const [WIDE, , TELNET, RDP, PAY] = [1, 2, 3, 4, 5].map(
  (id) => `${id < 5 ? 1 : 2}/${id === 3 || id === 4 ? 'deny_rules' : 'sec_rules'}/${id}`,
)
const rule = (port: number, more: object = {}) => ({
  providers: ['ams'],
  consumers: ['ams'],
  ingress_services: [{ port, proto: 'tcp' }],
  ...more,
})

/** The warnings of the dry run, which are those of the write as well. */
async function warned(bench: Bench, tool: string, args: object): Promise<string[]> {
  const dry = await bench.ok(tool, { ...args, dry_run: true })
  const real = await bench.ok(tool, args)
  t.same(real.warnings, dry.warnings, `${tool} warns of the same in the dry run and after the write`)
  return dry.warnings ?? []
}

t.test('rules of other rule sets that decide all of a new rule', async (t) => {
  const bench = await startBench(t, { estate })
  const to = { ruleset_name: 'Pay', rule_type: 'allow' }
  const covered = `The allow rule ${DRAFT}/${WIDE} of the rule set "Everywhere" decides all of this already: the rule changes nothing.`
  t.same(await warned(bench, 'create-rule', { ...to, ...rule(443) }), [covered])
  t.same(await warned(bench, 'create-rule', { ...to, ...rule(22) }), [], 'a disabled rule decides nothing')
  t.same(
    await warned(bench, 'create-rule', { ...to, ...rule(443, { consumers: ['app=shop'], unscoped_consumers: true }) }),
    [],
    'sources beyond it',
  )
  t.same(await warned(bench, 'create-rule', { ...to, ...rule(3389) }), [
    `It allows nothing: the override deny rule ${DRAFT}/${RDP} of the rule set "Everywhere" denies all of it, which comes first.`,
  ])
  t.same(await warned(bench, 'create-deny-rule', { ruleset_name: 'Pay', ...rule(80) }), [
    `It blocks nothing: the allow rule ${DRAFT}/${PAY} of the rule set "Pay" (which has changes that are not provisioned) decides all of it, which comes first.`,
  ])
  t.same(
    await warned(bench, 'create-deny-rule', {
      ruleset_name: 'Pay',
      ...rule(23, { consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'], providers: ['role=db'] }),
    }),
    [
      `The deny rule ${DRAFT}/${TELNET} of the rule set "Everywhere" decides all of this already: the rule changes nothing.`,
      'The consumers are any address in effect: "Any (0.0.0.0/0 and ::/0)" has 100 % of IPv4 and 100 % of IPv6. The rule denies nearly everybody.',
    ],
  )
  const set = {
    name: 'New',
    scopes: [['app=pay', 'env=prod']],
    rules: [rule(25), rule(444), rule(25, { providers: ['role=db'] }), rule(25)],
  }
  t.same(await warned(bench, 'create-ruleset', set), [
    'Rule 3 says the same as rule 0: a second one changes nothing.',
    `Rule 1: ${covered}`,
    'Rule 2: Rule 0 of this call decides all of this already: the rule changes nothing.',
  ])
})

t.test('a ringfence tells which of its rules others make needless', async (t) => {
  const open = { from: 'app=shop', to: 'ams', extra: true }
  const wide = handMade({
    hosts: {
      'pay-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' },
      'shop-1': { ip: '10.1.0.2', labels: 'app=shop env=prod' },
    },
    flows: [{ from: 'shop-1', to: 'pay-1' }],
    ruleSets: [{ name: 'Wide', scope: 'env=prod', allow: [open] }],
  })
  const bench = await startBench(t, { estate: wide })
  const asked = { app_name: 'pay', env_name: 'prod' }
  const said = `Rules that others may make needless: the allow rule for "shop (prod)": The allow rule ${DRAFT}/1/sec_rules/1 of the rule set "Wide" decides all of this already: the rule changes nothing.`
  t.ok((await bench.ok('create-ringfence', { ...asked, dry_run: true })).warnings.includes(said))
  t.ok((await bench.ok('create-ringfence', { ...asked, detail_level: 'full' })).warnings.includes(said))
})

t.test('what was not looked at is said, and keeps no rule from being written', async (t) => {
  const args = { ruleset_name: 'Pay', rule_type: 'allow', ...rule(443), dry_run: true }
  const refusing = await startBench(t, { estate })
  const body = [{ token: 'no', message: 'Not for you.' }]
  refusing.simulator.faults.add({
    kind: 'status',
    path: /\/rule_sets$/,
    method: 'GET',
    skip: 1,
    times: 1,
    status: 403,
    body,
  })
  const [warning] = (await refusing.ok('create-rule', args)).warnings
  t.match(warning, /^Whether other rules decide all of this already is not known: .*Not for you/u)

  const [first] = estate.ruleSets
  const many = Array.from({ length: 500 }, (_, at) => ({
    ...first!,
    href: `${DRAFT}/${at + 9}`,
    name: `r${at}`,
    rules: [],
    deny_rules: [],
  }))
  const bench = await startBench(t, { estate: { ...estate, ruleSets: [...estate.ruleSets.slice(1), ...many] } })
  t.same((await bench.ok('create-rule', args)).warnings, [
    'Only 500 of 502 rule sets were looked at for rules that decide all of this already.',
  ])

  const ports = Array.from({ length: 403 }, (_, at) => ({
    from: 'ams',
    to: 'ams',
    services: [{ port: 1000 + at, proto: 6 }],
  }))
  const wide = handMade({
    hosts: { 'pay-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' } },
    ruleSets: [
      { name: 'Pay', scope: 'app=pay env=prod' },
      { name: 'Many', scope: 'env=prod', allow: ports },
    ],
  })
  t.same((await (await startBench(t, { estate: wide })).ok('create-rule', args)).warnings, [
    '3 more rules that may decide about the same were not compared: labels that narrow its ends leave fewer to compare, and find-redundant-rules compares all once it is written.',
  ])
})
