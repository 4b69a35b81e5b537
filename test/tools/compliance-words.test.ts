/** compliance-check says of rules and rows what they are: which ports are open, and that a deny rule is about them. */
import t from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'
import { startListed } from './listed-pce.js'
import { CART, LABELS, POLICY, SHOP, hostOf } from './shop-and-cart.js'

const details = (answer: Json): string => answer.findings.map((one: Json) => one.detail).join('\n')

t.test('every port of one protocol is not every service', async (t) => {
  const detailOf = async (...services: Json[]) => {
    const estate = handMade({
      hosts: { web: { ip: '10.0.0.1', labels: 'app=shop env=prod', mode: 'full' } },
      ruleSets: [{ name: 'Shop', scope: 'app=shop', allow: [{ from: 'any', to: 'ams', extra: true, services }] }],
    })
    const bench = await startBench(t, { estate })
    const { findings } = await bench.ok('compliance-check', {
      framework: 'pci-dss',
      app_name: 'shop',
      env_name: 'prod',
    })
    const { status, detail, evidence } = findings.find((one: Json) => one.id === 'PCI-7.1')
    return [status, detail, evidence.counts.everything_from_anybody]
  }
  const [tcp, udp] = [6, 17].map((proto) => ({ port: 1, to_port: 65_535, proto }))
  t.same(await detailOf(udp!), ['FAIL', '1 rule opening every port of UDP to any address.', 0])
  t.same(await detailOf(tcp!, udp!), ['FAIL', '1 rule opening every port of TCP and UDP to any address.', 0])
})

t.test('a row that a deny rule at a selective source is about may be blocked already', async (t) => {
  const [set] = POLICY['sec_policy/rule_sets']!
  const deny = {
    href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/2',
    enabled: true,
    override: false,
    consumers: [{ label: SHOP }],
    providers: [{ ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } }],
    ingress_services: [{ port: 443, proto: 6 }],
    unscoped_consumers: true,
  }
  const any = {
    href: '/orgs/1/sec_policy/draft/ip_lists/1',
    name: 'Any (0.0.0.0/0 and ::/0)',
    ip_ranges: [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }],
  }
  const row = {
    src: { ip: '10.1.0.2', workload: hostOf('shop-1', SHOP, 'selective') },
    dst: { ip: '10.1.0.1', workload: hostOf('cart-1', CART, 'idle') },
    service: { port: 443, proto: 6 },
    num_connections: 5,
    policy_decision: 'allowed',
    flow_direction: 'outbound',
    timestamp_range: { first_detected: '2026-06-14T00:00:00Z', last_detected: '2026-06-14T01:00:00Z' },
  }
  const ask = async (denies: Json[]) => {
    const bench = startListed(t, {
      lists: {
        labels: LABELS,
        workloads: [row.src.workload, row.dst.workload],
        ...POLICY,
        'sec_policy/ip_lists': [any],
        'sec_policy/rule_sets': [{ ...set, deny_rules: denies }],
        'sec_policy/draft/rule_sets/1/deny_rules': denies,
        'sec_policy/active/rule_sets/1/deny_rules': denies,
      },
      rows: [row],
    })
    return (await bench).ok('compliance-check', { framework: 'general', app_name: 'shop', env_name: 'prod' })
  }
  const mayBe =
    '1 row that no rule allows may be blocked already: undecided because of deny rules at sources in selective mode.'
  const [without, denied] = [await ask([]), await ask([deny])]
  t.notOk(details(without).includes('blocked already'))
  t.equal(details(denied).includes(mayBe), true, details(denied))
  t.same(denied.assumes, ['P51'])
})

t.test('rows that may be blocked already count in the bounds, and not as passing', async (t) => {
  const out = (to: string, first: number, rows: number) =>
    Array.from({ length: rows }, (_, at) => ({ from: 'web', to, port: first + at }))
  const estate = handMade({
    hosts: {
      web: { ip: '10.0.0.1', labels: 'app=shop env=prod role=web loc=eu', mode: 'selective' },
      db: { ip: '10.0.1.1', labels: 'app=db env=prod' },
    },
    flows: [...out('db', 1000, 4), ...out('203.0.113.9', 5000, 6)],
    ruleSets: [
      {
        name: 'shop',
        scope: '',
        allow: [{ from: 'app=shop', to: 'app=db' }],
        deny: [{ from: 'app=shop', to: 'any' }],
      },
    ],
  })
  const { ok } = await startBench(t, { estate })
  const judge = async (framework: string, id: string, ...counts: string[]) => {
    const { findings } = await ok('compliance-check', { framework, app_name: 'shop', env_name: 'prod' })
    const { status, detail, evidence } = findings.find((one: Json) => one.id === id)
    return [status, detail, ...counts.map((name) => evidence.counts[name])]
  }
  const mayBe =
    '6 rows that no rule allows may be blocked already: undecided because of deny rules at sources in selective mode.'
  t.same(await judge('general', 'SEG-4', 'allowed', 'potentially_blocked', 'maybe_blocked'), [
    'WARNING',
    `40 to 100 % of the rows that pass are allowed by policy (PASS from 90 %, WARNING from 50 %). ${mayBe}`,
    4,
    6,
    6,
  ])
  t.same(await judge('dora', 'DORA-8.1', 'unknown_ends', 'undecided'), [
    'WARNING',
    `PASS: 1 workload, all with all four labels. WARNING: The other end of 40 to 100 % of the rows is known (PASS from 90 %, WARNING from 50 %). ${mayBe}`,
    6,
    6,
  ])
  t.same(await judge('pci-dss', 'PCI-1.4', 'passing_unenforced', 'undecided'), ['NOT_ASSESSED', mayBe, 0, 6])
})

t.test('of a deny rule at a selective source it says what explain-flow says', async (t) => {
  const ask = async (mode: 'idle' | 'selective', denies: boolean) => {
    const estate = handMade({
      hosts: {
        web: { ip: '10.0.0.1', labels: 'app=shop env=prod', mode: 'selective' },
        db: { ip: '10.0.1.1', labels: 'app=db env=prod', mode },
      },
      flows: [{ from: 'web', to: 'db', port: 5432, recorded: 'allowed' }],
      ruleSets: [{ name: 'shop', scope: '', deny: denies ? [{ from: 'app=shop', to: 'app=db' }] : [] }],
    })
    const { ok } = await startBench(t, { estate })
    const flow = await ok('explain-flow', { source: 'web', destination: 'db', port: 5432, proto: 'tcp' })
    const checked = await ok('compliance-check', { framework: 'general', app_name: 'shop', env_name: 'prod' })
    const { status, detail, evidence } = checked.findings.find(({ id }: Json) => id === 'SEG-4')
    const { potentially_blocked: reported, blocked, maybe_blocked: open } = evidence.counts
    return {
      explained: [flow.active.verdict, flow.assumes],
      checked: [status, { reported, blocked, open }, checked.assumes],
      because: /deny rules at sources in selective mode/.test(detail),
    }
  }
  t.same(await ask('idle', true), {
    explained: ['uncertain', ['P51']],
    checked: ['NOT_ASSESSED', { reported: 1, blocked: 0, open: 1 }, ['P51']],
    because: true,
  })
  t.same(await ask('idle', false), {
    explained: ['allowed', undefined],
    checked: ['FAIL', { reported: 1, blocked: 0, open: undefined }, undefined],
    because: false,
  })
  t.same(await ask('selective', true), {
    explained: ['blocked', undefined],
    checked: ['PASS', { reported: 0, blocked: 1, open: undefined }, undefined],
    because: false,
  })
})

t.test('where neither end enforces policy, nothing is said of the rules', async (t) => {
  const estate = handMade({
    hosts: {
      web: { ip: '10.0.0.1', labels: 'app=shop env=prod', mode: 'idle' },
      db: { ip: '10.0.1.1', labels: 'app=db env=test', managed: false },
    },
    flows: [{ from: 'web', to: 'db', port: 5432 }],
    ruleSets: [{ name: 'to db', scope: '', allow: [{ from: 'app=shop', to: 'app=db' }] }],
  })
  const { ok } = await startBench(t, { estate })
  const { findings } = await ok('compliance-check', { framework: 'pci-dss', app_name: 'shop', env_name: 'prod' })
  const { status, detail, evidence } = findings.find((one: Json) => one.id === 'PCI-1.3')
  const { passing_unenforced: passing, enforced_at_neither_end: neither } = evidence.counts
  t.same([status, detail, passing, neither], ['WARNING', '1 row passing because neither end enforces policy.', 0, 1])
})
