/** What a person is told before a rule or service is written: an end that is any address, ports that are all, denies that stop nothing. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench } from './harness.js'
import { startTwisted } from './twisted.js'

const made = handMade({
  hosts: {
    seen: { ip: '10.1.0.1', labels: 'app=pay env=prod', mode: 'visibility_only' },
    held: { ip: '10.1.0.2', labels: 'app=pay env=prod', mode: 'full' },
    old: { ip: '10.1.0.3', labels: 'app=pay env=prod role=db', mode: 'full' },
    bare: { ip: '10.1.0.4', labels: 'app=pay env=prod', managed: false },
    away: { ip: '10.1.0.5', labels: 'app=web env=prod', mode: 'idle' },
  },
  ipLists: {
    Low: ['0.0.0.0/1'],
    High: ['128.0.0.0/1'],
    Six: ['2000::/3'],
    Cloud: ['52.0.0.0/16'],
    Office: ['10.0.0.0/8'],
  },
  ruleSets: [
    {
      name: 'Pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'iplist:Office', to: 'ams', services: [{ port: 80, proto: 6 }] }],
      deny: [{ from: 'iplist:Office', to: 'role=db' }],
      override: [{ from: 'iplist:Office', to: 'role=db' }],
    },
  ],
})
/** One VEN is old, and the release of another is not told. */
const estate = {
  ...made,
  workloads: made.workloads.map((one) => {
    const agent = one.agent as { status?: object } | undefined
    const version = one.hostname === 'held' ? null : one.hostname === 'old' ? '22.2.41-9' : '22.3.0-10'
    return one.managed === true
      ? { ...one, agent: { ...agent, status: { ...agent?.status, agent_version: version } } }
      : one
  }),
} as typeof made
const PAY = '/orgs/1/sec_policy/draft/rule_sets/1'
const WEB = [{ port: 443, proto: 'tcp' }]
const ALL = ['All Services']

const warned = async (bench: Bench, tool: string, args: object): Promise<string[]> =>
  (await bench.ok(tool, { ...args, dry_run: true })).warnings ?? []

t.test('a rule with an end that is any address in effect', async (t) => {
  const bench = await startBench(t, { estate })
  const rule = (consumers: string[], more: object = {}) => ({
    ruleset_name: 'Pay',
    providers: ['ams'],
    consumers,
    ingress_services: WEB,
    unscoped_consumers: true,
    ...more,
  })
  const wide = (side: string, names: string, shares: string, rest: string) =>
    `The ${side} are any address in effect: ${names} has ${shares}. The rule ${rest}.`
  const both = wide('consumers', '"Low", "High"', '100 % of IPv4 and 0 % of IPv6', 'allows nearly everybody')
  t.same(await warned(bench, 'create-rule', rule(['iplist:Low', 'iplist:High'])), [both])
  t.same(await warned(bench, 'create-rule', rule(['iplist:Six'], { ingress_services: ALL })), [
    wide(
      'consumers',
      '"Six"',
      '0 % of IPv4 and 12.5 % of IPv6',
      'allows nearly everybody, on every port in effect (100 % of TCP and 100 % of UDP)',
    ),
  ])
  t.same(await warned(bench, 'create-rule', rule(['iplist:Cloud'])), [
    'The consumers are thousands of addresses beyond private ranges: "Cloud" has less than 0.1 % of IPv4 and 0 % of IPv6. The rule allows whoever has one of them.',
  ])
  t.same(await warned(bench, 'create-rule', rule(['iplist:Office'], { ingress_services: ALL })), [])
  const update = { href: `${PAY}/sec_rules/1`, consumers: ['iplist:Low', 'iplist:High'] }
  t.same(await warned(bench, 'update-sec-rule', update), [
    wide('consumers', '"Low", "High"', '100 % of IPv4 and 0 % of IPv6', 'allows nearly everybody'),
  ])
  t.same(
    await warned(bench, 'create-ruleset', {
      name: 'New',
      scopes: [['app=web']],
      rules: [
        { providers: ['ams'], consumers: ['ams'], ingress_services: WEB },
        { providers: ['iplist:Low', 'iplist:High'], consumers: ['ams'], ingress_services: WEB, rule_type: 'allow' },
      ],
    }),
    [`Rule 1: ${wide('providers', '"Low", "High"', '100 % of IPv4 and 0 % of IPv6', 'allows nearly everybody')}`],
  )
  const denied = await warned(bench, 'create-deny-rule', rule(['iplist:Low', 'iplist:High']))
  t.ok(denied.includes(both.replace('allows', 'denies')))
  t.same((await bench.ok('create-rule', rule(['iplist:Low', 'iplist:High']))).warnings, [both], 'and afterwards')
})

t.test('a service that is every port in effect', async (t) => {
  const bench = await startBench(t, { estate })
  const wide = (shares: string) => [
    `The service is every port in effect: it has ${shares}. A rule that allows it allows nearly everything.`,
  ]
  const service = (name: string, ...ports: object[]) => ({ name, service_ports: ports })
  const tcp = service(
    'tcp',
    { port: 1, to_port: 32_767, proto: 'tcp' },
    { port: 32_768, to_port: 65_535, proto: 'tcp' },
  )
  t.same(await warned(bench, 'create-service', tcp), wide('99.9 % of TCP and 0 % of UDP'))
  t.same(await warned(bench, 'create-service', service('udp', { proto: 'udp' })), wide('0 % of TCP and 100 % of UDP'))
  const dynamic = service('rpc', { port: 49_152, to_port: 65_535, proto: 'tcp' })
  t.same(await warned(bench, 'create-service', dynamic), [])
  const program = { name: 'win', windows_services: [{ process_name: 'c:\\a.exe' }] }
  t.same(await warned(bench, 'create-service', program), [], 'a program is no port')
  t.same((await bench.ok('create-service', tcp)).warnings, wide('99.9 % of TCP and 0 % of UDP'))
  await bench.ok('create-service', dynamic)
  const grown = { name: 'rpc', service_ports: [{ port: 1024, to_port: 65_535, proto: 'tcp' }] }
  t.same(await warned(bench, 'update-service', grown), wide('98.4 % of TCP and 0 % of UDP'))
})

const IDLE = 'Of 3 destinations with a VEN, 1 is idle or in visibility_only, and nothing is enforced there: seen.'
const OLD =
  'Of 3 destinations with a VEN, 1 has a VEN before 22.3.0, which ignores override denies: old; of 1 the release of the VEN is not known.'

t.test('a deny says where nothing enforces it, and which VENs do not know override deny', async (t) => {
  const bench = await startBench(t, { estate })
  const deny = { ruleset_name: 'Pay', providers: ['ams'], consumers: ['iplist:Office'], ingress_services: WEB }
  t.same(await warned(bench, 'create-deny-rule', deny), [IDLE])
  t.same(await warned(bench, 'create-deny-rule', { ...deny, override_deny: true }), [IDLE, OLD])
  t.same(await warned(bench, 'create-rule', { ...deny, rule_type: 'override_deny' }), [IDLE, OLD])
  const { warnings } = await bench.ok('create-deny-rule', { ...deny, override_deny: true })
  t.same(warnings, [IDLE, OLD], 'and afterwards')
  const { ruleset_name: _name, ...rule } = deny
  const rules = [{ ...rule, rule_type: 'override_deny' }]
  t.same(await warned(bench, 'create-ruleset', { name: 'New', scopes: [['app=pay']], rules }), [
    `Rule 0: ${IDLE}`,
    `Rule 0: ${OLD}`,
  ])
  t.same(
    await warned(bench, 'update-deny-rule', { href: `${PAY}/deny_rules/2`, description: 'x' }),
    [],
    'it is enforced',
  )
  t.same(
    await warned(bench, 'update-deny-rule', {
      href: `${PAY}/deny_rules/3`,
      providers: ['workload:seen', 'workload:away'],
    }),
    ['Of 2 destinations with a VEN, 2 are idle or in visibility_only, and nothing is enforced there: seen, away.'],
  )
  const inside = { ...deny, consumers: ['ams'] }
  t.same(await warned(bench, 'create-deny-rule', inside), [IDLE.replace('destinations', 'workloads')], 'both ends')
  t.same(await warned(bench, 'create-deny-rule', { ...inside, unscoped_consumers: true }), [
    IDLE,
    'Of 4 sources with a VEN, 2 are idle or in visibility_only, and nothing is enforced there: seen, away.',
  ])
  t.same(
    await warned(bench, 'create-rule', {
      ...deny,
      ingress_services: [{ port: 8443, proto: 'tcp' }],
      rule_type: 'allow',
    }),
    [],
  )
})

t.test('an excluded label in a deny rule, by the release of the PCE', async (t) => {
  const bench = await startTwisted(t, { estate })
  const actors = ['ams', { key: 'role', value: 'db', exclusion: true }]
  const deny = { ruleset_name: 'Pay', providers: actors, consumers: ['iplist:Office'], ingress_services: WEB }
  const release = (version?: unknown) =>
    bench.twist(({ path }) =>
      path === '/product_version' ? { status: 200, body: JSON.stringify({ version }) } : undefined,
    )
  const about = async (tool = 'create-deny-rule', args: object = deny) =>
    (await warned(bench, tool, args)).filter((text) => text.includes('release could'))
  release('25.2.10')
  t.same(await about(), [])
  release('25.2.9-31')
  bench.writes()
  for (const dry_run of [true, false]) {
    const { message, release: told } = await bench.fails('create-deny-rule', { ...deny, dry_run }, 'invalid_actor')
    t.equal(
      message,
      'This PCE has release 25.2.9-31: before 25.2.10 only allow rules can exclude labels, not deny rules. Nothing was written.',
    )
    t.equal(told, '25.2.9-31')
  }
  await bench.fails('update-deny-rule', { href: `${PAY}/deny_rules/2`, providers: actors }, 'invalid_actor')
  const { ruleset_name: _name, ...rule } = deny
  const rules = [{ ...rule, rule_type: 'deny' }]
  await bench.fails('create-ruleset', { name: 'New', scopes: [['app=pay']], rules }, 'invalid_actor')
  await bench.fails('create-rule', { ...deny, rule_type: 'deny' }, 'invalid_actor')
  t.same(bench.writes(), [])
  t.same(await about('create-rule', { ...deny, rule_type: 'allow' }), [], 'an allow rule takes it')
  release('new')
  t.same(await about(), [
    'Whether this PCE takes an excluded label in a deny rule is not known, because its release could not be read: before 25.2.10 only allow rules can have one.',
  ])
})
