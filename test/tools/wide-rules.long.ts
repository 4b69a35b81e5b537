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
    `The ${side} are any address in effect: ${names} ${names.includes(',') ? 'together cover' : 'has'} ${shares}. The rule ${rest}.`
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

t.test('a changed rule counts as it will be', async (t) => {
  const bench = await startTwisted(t, { estate })
  const wide = (does: string, ports = ', on every port in effect (100 % of TCP and 100 % of UDP)') => [
    `The consumers are any address in effect: "Low", "High" together cover 100 % of IPv4 and 0 % of IPv6. The rule ${does} nearly everybody${ports}.`,
  ]
  const about = async (tool: string, change: object) => {
    const href = `${PAY}/${tool === 'update-sec-rule' ? 'sec_rules/1' : 'deny_rules/2'}`
    return (await warned(bench, tool, { href, ...change })).filter((text) => text.includes('any address in effect'))
  }
  const consumers = ['iplist:Low', 'iplist:High']
  for (const [tool, does] of [
    ['update-sec-rule', 'allows'],
    ['update-deny-rule', 'denies'],
  ] as const) {
    const href = `${PAY}/${tool === 'update-sec-rule' ? 'sec_rules/1' : 'deny_rules/2'}`
    await bench.ok(tool, { href, ingress_services: ALL })
    t.same(await about(tool, { consumers }), wide(does), 'with the services that it has')
    t.same(await about(tool, { consumers, ingress_services: WEB }), wide(does, ''))
    await bench.ok(tool, { href, consumers, ingress_services: WEB, enabled: false })
    t.same(await about(tool, { ingress_services: ALL }), wide(does), 'with the ends that it has')
    t.same(await about(tool, { enabled: true }), wide(does, ''), 'enabled')
    t.same(await about(tool, { description: 'x' }), [])
  }
  bench.twist(({ path }) => (path.includes('/ip_lists/') ? { status: 404, body: '[]' } : undefined))
  const [unknown, ...others] = await about('update-sec-rule', { enabled: true })
  t.match(unknown, /^Whether the consumers are any address in effect is not known: No IP list has the href /)
  t.same(others, [])
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

const IDLE = '1 of 3 destinations with a VEN is idle or in visibility_only, and nothing is enforced there: "seen".'
const OLD = [
  '1 of 3 destinations with a VEN has a release before 22.3.0, which ignores override denies: "old".',
  'The VEN release of 1 of 3 destinations with a VEN is unknown: "held".',
]
const drops = (who: string, names: string) =>
  `${who} idle or in visibility_only and ${who.endsWith('is') ? 'drops' : 'drop'} nothing, so only the other end of a connection can enforce the rule: ${names}.`

t.test('a deny says where nothing enforces it, and which VENs do not know override deny', async (t) => {
  const bench = await startBench(t, { estate })
  const deny = { ruleset_name: 'Pay', providers: ['ams'], consumers: ['iplist:Office'], ingress_services: WEB }
  t.same(await warned(bench, 'create-deny-rule', deny), [IDLE])
  t.same(await warned(bench, 'create-deny-rule', { ...deny, override_deny: true }), [IDLE, ...OLD])
  t.same(await warned(bench, 'create-rule', { ...deny, rule_type: 'override_deny' }), [IDLE, ...OLD])
  const { warnings } = await bench.ok('create-deny-rule', { ...deny, override_deny: true })
  t.same(warnings, [IDLE, ...OLD], 'and afterwards')
  const { ruleset_name: _name, ...rule } = deny
  const rules = [{ ...rule, rule_type: 'override_deny' }]
  t.same(await warned(bench, 'create-ruleset', { name: 'New', scopes: [['app=pay']], rules }), [
    `Rule 0: ${IDLE}`,
    ...OLD.map((text) => `Rule 0: ${text}`),
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
    ['2 of 2 destinations with a VEN are idle or in visibility_only, and nothing is enforced there: "seen", "away".'],
  )
  const inside = { ...deny, consumers: ['ams'] }
  t.same(
    await warned(bench, 'create-deny-rule', inside),
    [drops('1 of 3 workloads with a VEN is', '"seen"')],
    'both ends',
  )
  t.same(await warned(bench, 'create-deny-rule', { ...inside, unscoped_consumers: true }), [
    drops('1 of 3 destinations with a VEN is', '"seen"'),
    drops('2 of 4 sources with a VEN are', '"seen", "away"'),
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

t.test('a deny says what is unknown, not settled, or was not looked at', async (t) => {
  const host = (ip: string, app: string, mode?: 'selective' | 'full') => ({
    ip,
    labels: `app=${app}`,
    ...(mode && { mode }),
  })
  const hosts = {
    a: host('10.2.0.1', 'from', 'selective'),
    b: host('10.2.0.2', 'to', 'selective'),
    'c, "d"': host('10.2.0.3', 'to', 'full'),
    e: host('10.2.0.4', 'from', 'full'),
  }
  const bench = await startTwisted(t, {
    estate: handMade({ hosts, ipLists: { Office: ['10.0.0.0/8'] }, ruleSets: [{ name: 'All', scope: '' }] }),
  })
  const deny = { ruleset_name: 'All', providers: ['app=to'], consumers: ['app=from'], ingress_services: WEB }
  const unsettled = (share: string) =>
    `Whether a source in selective mode itself enforces a deny is not settled: ${share} with a VEN is in it: "a".`
  t.same(await warned(bench, 'create-deny-rule', deny), [unsettled('1 of 2 sources')], 'destinations enforce it')
  t.same(await warned(bench, 'create-deny-rule', { ...deny, providers: ['iplist:Office'] }), [
    unsettled('1 of 2 sources'),
  ])

  bench.twist(({ path }, { status, body }) => {
    if (path.endsWith('/kubernetes_workloads')) return { status: 403, body: '[]' }
    if (!path.endsWith('/workloads')) return undefined
    const listed = (JSON.parse(body) as { name: string }[]).map((one) =>
      one.name.startsWith('c') ? { ...one, enforcement_mode: 'brand_new' } : one,
    )
    return { status, body: JSON.stringify(listed) }
  })
  const UNKNOWN = 'The mode of 1 of 2 destinations with a VEN is unknown: "c, \\"d\\"".'
  const PODS =
    'Kubernetes workloads could not be read (GET /orgs/1/kubernetes_workloads: the PCE answered 403 Forbidden), so what concerns them is not known.'
  t.same(await warned(bench, 'create-deny-rule', deny), [UNKNOWN, unsettled('1 of 2 sources'), PODS])
  const { ruleset_name: _name, ...rule } = { ...deny, rule_type: 'deny', consumers: ['iplist:Office'] }
  bench.simulator.clearRequests()
  t.same(await warned(bench, 'create-ruleset', { name: 'New', scopes: [['app=to']], rules: [rule, rule] }), [
    'Rule 1 says the same as rule 0: a second one changes nothing.',
    `Rule 0: ${UNKNOWN}`,
    `Rule 1: ${UNKNOWN}`,
    PODS,
  ])
  const read = bench.simulator.requests.filter(
    ({ path, query }) => /\/workloads$/.test(path) && JSON.stringify(query).includes('managed'),
  )
  t.equal(read.length, 1, 'workloads are read once for all rules')
})

t.test('a deny does not look at Kubernetes workloads, and says so', async (t) => {
  const bench = await startBench(t)
  const pods = (await bench.pce.kubernetesWorkloads.getAll()).length
  const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: WEB, rule_type: 'deny' }
  const all = await warned(bench, 'create-ruleset', { name: 'New', scopes: [[]], rules: [rule] })
  t.equal(
    all.at(-1),
    `Kubernetes workloads were not looked at: this PCE has ${pods}, and whether they enforce what is denied here is not known.`,
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

t.test('selectors that are null, and label groups that cannot be read, stop no write', async (t) => {
  const bench = await startTwisted(t, { estate })
  const group = { href: '/orgs/1/sec_policy/draft/label_groups/9' }
  const app = made.labels.find(({ key, value }) => key === 'app' && value === 'pay')!
  const odd = (labels: object[] | null) =>
    bench.twist(({ method, path }, { status, body }) => {
      if (method !== 'GET') return undefined
      if (path === group.href)
        return labels === null
          ? { status: 404, body: '[]' }
          : { status: 200, body: JSON.stringify({ ...group, name: 'G', key: 'app', labels, sub_groups: [] }) }
      if (path === PAY) {
        const scopes = [[{ label: null, label_group: group }]]
        return { status, body: JSON.stringify({ ...(JSON.parse(body) as object), scopes }) }
      }
      if (path !== `${PAY}/deny_rules/2`) return undefined
      const rule = JSON.parse(body) as { consumers: object[]; providers: object[] }
      const withNulls = (ends: object[]) => ends.map((end) => ({ label: null, label_group: null, ...end }))
      return {
        status,
        body: JSON.stringify({ ...rule, consumers: withNulls(rule.consumers), providers: withNulls(rule.providers) }),
      }
    })
  const rule = { ruleset_href: PAY, providers: ['ams'], consumers: ['iplist:Office'], ingress_services: WEB }
  const calls: [string, object][] = [
    ['create-deny-rule', rule],
    ['create-rule', { ...rule, ingress_services: [{ port: 80, proto: 'tcp' }], rule_type: 'deny' }],
    ['update-deny-rule', { href: `${PAY}/deny_rules/2`, enabled: true, description: 'again' }],
  ]
  odd([{ href: app.href }])
  bench.writes()
  for (const [tool, args] of calls) {
    const { warnings } = await bench.ok(tool, args)
    t.same(warnings ?? [], tool === 'update-deny-rule' ? [] : [IDLE], tool)
  }
  bench.twist(({ method, path }, { status, body }) => {
    if (method !== 'GET' || path !== `${PAY}/deny_rules/2`) return undefined
    const providers = ['absent', 'gone'].map((id) => ({ workload: { href: `/orgs/1/workloads/${id}` } }))
    return { status, body: JSON.stringify({ ...(JSON.parse(body) as object), providers }) }
  })
  t.same(await warned(bench, 'update-deny-rule', { href: `${PAY}/deny_rules/2`, enabled: true }), [
    '2 destinations that it names could not be read, so the mode there is unknown: No workload has the href "/orgs/1/workloads/absent".',
  ])
  odd(null)
  for (const [tool, args] of calls)
    t.same(
      (await warned(bench, tool, args)).filter((text) => text.includes('enforce')),
      [`Whether the workloads at its ends enforce the rule is not known: No label group has the href "${group.href}".`],
      `${tool}, and the group is gone`,
    )
  t.equal(bench.writes().length, calls.length)
})

t.test('labels of more combinations than one request can ask for', async (t) => {
  const labels = ['role', 'env', 'loc'].flatMap((key) => [1, 2, 3, 4, 5, 6].map((one) => `${key}=v${one}`))
  const bench = await startBench(t, { estate: handMade({ labels, ruleSets: [{ name: 'All', scope: '' }] }) })
  const ends = { ruleset_name: 'All', providers: labels, consumers: labels, ingress_services: WEB }
  bench.simulator.clearRequests()
  t.same(await warned(bench, 'create-deny-rule', ends), [
    'Modes and VENs of its workloads were not looked at, because the labels make more than 200 combinations.',
  ])
  t.same(
    bench.simulator.requests.filter(({ path }) => path.endsWith('/workloads')),
    [],
  )
})
