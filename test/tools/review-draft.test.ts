/** review-draft on an estate made by hand: each pending change with exactly the traffic that depends on it or asked for it. */
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { handMade } from './hand-made.js'
import { benchOf, NOW, startBench, type Bench, type Json } from './harness.js'

const TCP = (port: number) => ({ port, proto: 6 })
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const estate = () =>
  handMade({
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'shop-1': { ip: '10.0.1.1', labels: 'app=shop env=prod', mode: 'full' },
      'crm-1': { ip: '10.0.2.1', labels: 'app=crm env=prod', mode: 'visibility_only' },
    },
    ipLists: { Office: ['192.168.0.0/24'], Unused: ['203.0.113.0/24'] },
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [
          { from: 'app=shop', to: 'ams', services: [TCP(443)], extra: true },
          { from: 'iplist:Office', to: 'ams', services: [TCP(22)], extra: true },
        ],
      },
      { name: 'Crm', scope: 'app=crm env=prod' },
      { name: 'Shop', scope: 'app=shop env=prod' },
    ],
    flows: [
      { from: 'shop-1', to: 'pay-1', port: 443, connections: 7 },
      { from: '192.168.0.200', to: 'pay-1', port: 22, connections: 3 },
      { from: 'pay-1', to: 'shop-1', port: 8443, connections: 5 },
      { from: 'pay-1', to: 'crm-1', port: 5432, connections: 2 },
    ],
  })

const rule = (app: string, port: number) => ({
  enabled: true,
  consumers: [{ label: { href: app } }],
  providers: [{ actors: 'ams' }],
  ingress_services: [TCP(port)],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  unscoped_consumers: true,
})

/** The draft: Pay loses shop's rule; Shop and Crm get a rule for what pay asks; Office shrinks; Unused grows. */
async function change({ pce }: Bench): Promise<void> {
  const labels = await pce.labels.getAll()
  const pay = labels.find(({ value }) => value === 'pay')!.href
  const lists = await pce.ipLists.getAll()
  const list = (wanted: string) => lists.find(({ name }) => name === wanted)!.href
  await pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
  await pce.post(`${SETS}/2/sec_rules`, { includeOrg: false, json: rule(pay, 5432) })
  await pce.post(`${SETS}/3/sec_rules`, { includeOrg: false, json: rule(pay, 8443) })
  await pce.ipLists.update(list('Office'), { ip_ranges: [{ from_ip: '192.168.0.0/25' }] })
  await pce.ipLists.update(list('Unused'), { ip_ranges: [{ from_ip: '203.0.113.0/25' }] })
}

const brief = ({ changes }: Json) =>
  Object.fromEntries(
    changes.map(({ name, evidence, says, depends, asked_for: asked }: Json) => [
      name,
      [
        evidence,
        says,
        ...[...(depends ?? []), ...(asked ?? [])].map(
          (pair: Json) => `${pair.source} > ${pair.destination} ${pair.ports}`,
        ),
      ],
    ]),
  )

t.test('each change has the traffic that depends on what it removes, or asked for what it adds', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  await change(bench)
  const answer = await bench.ok('review-draft')
  t.same(brief(answer), {
    Pay: ['depends', 'In 30 days 7 connections of 1 pair would be cut.', 'shop (prod) > pay (prod) 443/tcp'],
    Office: [
      'depends',
      'In 30 days 3 connections of 1 pair would be cut.',
      '192.168.0.200 (Office) > pay (prod) 22/tcp',
    ],
    Shop: [
      'asked_for',
      'In 30 days 5 connections of 1 pair would be stopped without it.',
      'pay (prod) > shop (prod) 8443/tcp',
    ],
    Crm: [
      'asked_for',
      'In 30 days 2 connections of 1 pair would be stopped without it.',
      'pay (prod) > crm (prod) 5432/tcp',
    ],
    Unused: ['no_rules', 'No rule depends on it.'],
  })
  t.same(answer.evidence, { depends: 2, asked_for: 2, no_rules: 1 })
  t.equal(answer.total_pending_changes, 5)
  t.same(answer.changes.map(({ evidence }: Json) => evidence).slice(0, 2), ['depends', 'depends'], 'the worst first')
  t.equal(answer.changes.find(({ name }: Json) => name === 'Pay').effect, 'narrowing')
  t.ok(Buffer.byteLength(JSON.stringify(answer)) < 6_000)
})

t.test('a change that no observed traffic is about has no evidence, and that is said as such', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  const labels = await bench.pce.labels.getAll()
  const crm = labels.find(({ value }) => value === 'crm')!.href
  await bench.pce.post(`${SETS}/3/sec_rules`, { includeOrg: false, json: rule(crm, 9999) })
  const answer = await bench.ok('review-draft', { name: 'Shop' })
  t.same(brief(answer), { Shop: ['none', 'No evidence in 30 days.'] })
})

t.test('pages have each change once, and nothing pending is said', async (t) => {
  const bench = await startBench(t, { estate: estate() })
  t.same(await bench.ok('review-draft'), {
    summary: 'Nothing is pending; draft and active policy are the same.',
    total_pending_changes: 0,
    evidence: {},
    changes: [],
    truncated: false,
  })
  await change(bench)
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page: Json = await bench.ok('review-draft', { max_results: 2, ...(cursor && { cursor }) })
    names.push(...page.changes.map(({ name }: Json) => name))
    cursor = page.next_cursor
  } while (cursor !== undefined)
  t.same(names.toSorted(), ['Crm', 'Office', 'Pay', 'Shop', 'Unused'])
  await bench.fails('review-draft', { name: 'Payy' }, 'not_found')
})

t.test(
  'more pairs than are shown: the answer says how to see them, and a call about one change shows them',
  async (t) => {
    const flows = Array.from({ length: 12 }, (_, at) => ({
      from: `203.0.114.${at + 1}`,
      to: 'pay-1',
      port: 22,
      connections: 2,
    }))
    const world = handMade({
      hosts: { 'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' } },
      ipLists: { Branch: ['203.0.114.0/24'] },
      ruleSets: [
        {
          name: 'Pay',
          scope: 'app=pay env=prod',
          allow: [{ from: 'iplist:Branch', to: 'ams', services: [TCP(22)], extra: true }],
        },
      ],
      flows,
    })
    const bench = await startBench(t, { estate: world })
    const [list] = (await bench.pce.ipLists.getAll()).filter(({ name }) => name === 'Branch')
    await bench.pce.ipLists.update(list!.href, { description: 'x' })
    await bench.pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
    const both = await bench.ok('review-draft')
    const shown = both.changes.find(({ name }: Json) => name === 'Pay')
    t.same([shown.depends.length, shown.pairs_total], [3, 12])
    t.equal(both.more_pairs, 'With href, the answer is about one change and has up to 100 pairs of each kind.')
    const one = await bench.ok('review-draft', { href: shown.href })
    t.same([one.changes[0].depends.length, one.changes[0].pairs_total, one.more_pairs], [12, undefined, undefined])
    const small = await startBench(t, { estate: world, budget: 2_500 })
    await small.pce.delete(`${SETS}/1/sec_rules/1`, { includeOrg: false })
    const cut = await small.ok('review-draft', { name: 'Pay' })
    t.ok(cut.changes[0].depends.length >= 3 && cut.changes[0].depends.length < 12)
    t.equal(cut.changes[0].pairs_total, 12)
    t.match(cut.more_pairs, /^The others are in get-traffic-flows: /)
  },
)

/** The evidence of each changed rule of a change, in the order of the answer. */
const briefRules = ({ rules = [] }: Json) =>
  rules.map(({ change, rule, evidence, says, depends = [], asked_for: asked = [] }: Json) => [
    `${change} ${rule}`,
    evidence,
    says,
    ...[...depends, ...asked].map((pair: Json) => `${pair.source} > ${pair.destination} ${pair.ports}`),
  ])

const ports = (from: number, to: number) => [{ port: from, to_port: to, proto: 6 }]
const extra = (from: string, service: { port: number; to_port?: number; proto: number }, more = {}) => ({
  from,
  to: 'ams',
  services: [service],
  extra: true,
  ...more,
})

t.test('the rules of a changed rule set do not hide each other', async (t) => {
  const world = handMade({
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'shop-1': { ip: '10.0.1.1', labels: 'app=shop env=prod', mode: 'full' },
      'crm-1': { ip: '10.0.2.1', labels: 'app=crm env=prod', mode: 'full' },
    },
    ipLists: { Office: ['192.168.0.0/24'] },
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [
          extra('app=shop', TCP(443)),
          extra('iplist:Office', TCP(22)),
          extra('app=crm', TCP(5432)),
          extra('app=shop', TCP(8000)),
          extra('app=shop', TCP(80), { description: 'Web' }),
        ],
      },
    ],
    flows: [
      { from: 'shop-1', to: 'pay-1', port: 443, connections: 7 },
      { from: '192.168.0.200', to: 'pay-1', port: 22, connections: 3 },
      { from: 'crm-1', to: 'pay-1', port: 5432, connections: 4 },
      { from: 'shop-1', to: 'pay-1', port: 8000, connections: 2 },
      { from: 'shop-1', to: 'pay-1', port: 80, connections: 6 },
      { from: 'shop-1', to: 'pay-1', port: 8443, connections: 5 },
    ],
  })
  const simulator = await createPceSimulator({ estate: world, totalCount: 'all', now: () => NOW })
  t.teardown(() => simulator.close())
  const url = await simulator.listen()
  const [bench, small] = [benchOf(t, simulator, url), benchOf(t, simulator, url, { budget: 4_000 })]
  const { pce } = bench
  const labels = await pce.labels.getAll()
  const app = (wanted: string) => labels.find(({ value }) => value === wanted)!.href
  const add = (from: string, services: object[], more = {}) =>
    pce.post(`${SETS}/1/sec_rules`, {
      includeOrg: false,
      json: {
        ...rule(app(from), 1),
        consumers: [{ label: { href: app(from) } }],
        providers: [{ actors: 'ams' }],
        ingress_services: services,
        ...more,
      },
    })
  const edit = (id: number, json: object) => pce.put(`${SETS}/1/sec_rules/${id}`, { includeOrg: false, json })
  await pce.delete(`${SETS}/1/sec_rules/2`, { includeOrg: false })
  await pce.delete(`${SETS}/1/sec_rules/3`, { includeOrg: false })
  await edit(4, { ingress_services: ports(8000, 8080) })
  await edit(5, { description: 'The web' })
  await add('crm', ports(5430, 5440))
  await add('crm', [TCP(9999)], { description: 'For later' })
  await add('shop', [TCP(8443)])
  await add('shop', ports(8440, 8450))
  await add('shop', [TCP(7000)], { enabled: false })
  await pce.post(`${SETS}/1/deny_rules`, {
    includeOrg: false,
    json: {
      enabled: true,
      consumers: [{ label: { href: app('shop') } }],
      providers: [{ actors: 'ams' }],
      ingress_services: [TCP(443)],
      unscoped_consumers: true,
      override: true,
    },
  })
  const answer = await bench.ok('review-draft')
  const [pay] = answer.changes
  const NONE = ['none', 'No evidence in 30 days.']
  const asked = (count: number) => [
    'asked_for',
    `In 30 days ${count} connections of 1 pair would be stopped without it.`,
  ]
  const cut = (count: number) => ['depends', `In 30 days ${count} connections of 1 pair would be cut.`]
  const quiet = (why: string) => ['no_rules', `It concerns no traffic: ${why}.`]
  const TO_ALL = 'to all workloads,'
  const expected: Record<string, string[]> = {
    [`removed Office ${TO_ALL} 22/tcp`]: [...cut(3), '192.168.0.200 (Office) > pay (prod) 22/tcp'],
    [`added app=shop ${TO_ALL} 443/tcp`]: [...cut(7), 'shop (prod) > pay (prod) 443/tcp'],
    // Another rule lets this traffic pass in its place.
    [`removed app=crm ${TO_ALL} 5432/tcp`]: NONE,
    // Its traffic needs no more ports than it had.
    [`changed app=shop ${TO_ALL} 8000/tcp`]: NONE,
    [`added app=crm ${TO_ALL} 9999/tcp`]: NONE,
    [`added app=crm ${TO_ALL} 5430-5440/tcp`]: [...asked(4), 'crm (prod) > pay (prod) 5432/tcp'],
    // Traffic that two new rules let pass asked for both.
    [`added app=shop ${TO_ALL} 8443/tcp`]: [...asked(5), 'shop (prod) > pay (prod) 8443/tcp'],
    [`added app=shop ${TO_ALL} 8440-8450/tcp`]: [...asked(5), 'shop (prod) > pay (prod) 8443/tcp'],
    [`changed app=shop ${TO_ALL} 80/tcp`]: quiet('only its texts change'),
    [`added app=shop ${TO_ALL} 7000/tcp`]: quiet('it is in force neither before nor after'),
  }
  const whole = Object.entries(expected).map(([named, said]) => [named, ...said])
  t.same(briefRules(pay), whole)
  const counts = {
    added: 6,
    changed: 2,
    removed: 2,
    unchanged: 1,
    evidence: { depends: 2, none: 3, asked_for: 3, no_rules: 2 },
  }
  t.same(pay.rule_changes, counts)
  t.match(answer.summary, / Of 10 rules \(6 added, 2 changed, 2 removed\): 2: .*; 3: no evidence in 30 days; 3: /)
  const facts = ({ position, rule_type: type, becomes, description }: Json) => [position, type, becomes, description]
  t.same(pay.rules.slice(1, 5).map(facts), [
    [1, 'override_deny', undefined, undefined],
    [3, 'allow', undefined, undefined],
    [4, 'allow', `app=shop ${TO_ALL} 8000-8080/tcp`, undefined],
    [7, 'allow', undefined, 'For later'],
  ])
  t.ok(Buffer.byteLength(JSON.stringify(answer)) < 6_000)

  const one = await bench.ok('review-draft', { href: `${SETS}/1/sec_rules/7` })
  t.same(briefRules(one.changes[0]), [whole[4]])
  t.same(one.changes[0].rule_changes, {
    added: 1,
    changed: 0,
    removed: 0,
    unchanged: 1,
    others: 9,
    evidence: { none: 1 },
  })

  t.same(brief(one), { Pay: NONE }, 'the evidence is of the rule, and not of its rule set')
  const removed = await bench.ok('review-draft', { href: `${SETS}/1/sec_rules/2` })
  t.same(brief(removed), { Pay: whole[0]!.slice(1) })
  t.equal(
    removed.summary,
    '1 pending change. 1: observed traffic depends on what it takes away. The evidence is of the rule asked for alone.',
  )
  const same = await bench.ok('review-draft', { href: `${SETS}/1/sec_rules/1` })
  t.same(brief(same), { Pay: quiet('this rule is not changed') })
  t.equal(same.changes[0].rule_changes.others, 10)
  const nobody = await bench.fails('review-draft', { href: `${SETS}/1/sec_rules/99` }, 'not_found')
  t.equal(nobody.argument, 'href')

  const listed: unknown[] = []
  let cursor: string | undefined
  do {
    const page: Json = await small.ok('review-draft', { name: 'Pay', ...(cursor && { cursor }) })
    t.ok(Buffer.byteLength(JSON.stringify(page)) <= 4_000)
    t.same(page.changes[0].rule_changes, counts, 'the numbers are of all rules')
    t.equal(page.changes[0].rules_from ?? 0, listed.length)
    listed.push(...briefRules(page.changes[0]))
    t.equal((page.changes[0].rules_left ?? 0) + listed.length, 10)
    t.equal(page.truncated, page.next_cursor !== undefined)
    cursor = page.next_cursor
  } while (cursor !== undefined && listed.length < 20)
  t.same(listed, whole, 'each rule once')

  await pce.ipLists.create({ name: 'Spare', ip_ranges: [{ from_ip: '192.0.2.1' }] })
  const both = await bench.ok('review-draft')
  const shown = both.changes.find(({ name }: Json) => name === 'Pay')
  t.same(briefRules(shown), whole.slice(0, 3), 'beside other changes, what to look at first')
  t.equal(shown.rules_left, 7)
  t.match(both.more_rules, /^With the href of its rule set, /)
})

t.test('a change of scopes changes every rule, and a change of the order none', async (t) => {
  const world = handMade({
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=test', mode: 'full' },
      'shop-1': { ip: '10.0.1.1', labels: 'app=shop env=prod', mode: 'full' },
    },
    ruleSets: [
      {
        name: 'Pay',
        scope: 'app=pay env=prod',
        allow: [extra('app=shop', TCP(443)), extra('app=shop', TCP(22)), extra('app=shop', TCP(80))],
      },
      { name: 'Off', scope: 'app=pay env=test', allow: [extra('app=shop', TCP(8080)), extra('app=shop', TCP(8081))] },
    ],
    flows: [
      { from: 'shop-1', to: 'pay-1', port: 443, connections: 7 },
      { from: 'shop-1', to: 'pay-2', port: 22, connections: 3 },
      { from: 'shop-1', to: 'pay-2', port: 8081, connections: 2 },
    ],
  })
  const bench = await startBench(t, { estate: world })
  const labels = await bench.pce.labels.getAll()
  const scope = ['pay', 'test'].map((wanted) => ({
    label: { href: labels.find(({ value }) => value === wanted)!.href },
  }))
  await bench.pce.put(`${SETS}/1`, { includeOrg: false, json: { scopes: [scope] } })
  await bench.pce.put(`${SETS}/2`, { includeOrg: false, json: { enabled: false } })
  const { changes } = await bench.ok('review-draft')
  const [pay, off] = ['Pay', 'Off'].map((wanted) => changes.find(({ name }: Json) => name === wanted))
  const through = (rows: Json[]) => rows.map(({ by_rule_set: by }) => by)
  t.same(
    [briefRules(pay), through(pay.rules)],
    [
      [
        [
          'changed app=shop to all workloads, 443/tcp',
          'depends',
          'In 30 days 7 connections of 1 pair would be cut.',
          'shop (prod) > pay (prod) 443/tcp',
        ],
        ['changed app=shop to all workloads, 80/tcp', 'none', 'No evidence in 30 days.'],
        [
          'changed app=shop to all workloads, 22/tcp',
          'asked_for',
          'In 30 days 3 connections of 1 pair would be stopped without it.',
          'shop (prod) > pay (test) 22/tcp',
        ],
      ],
      [true, true, true],
    ],
  )
  t.same(
    briefRules(off).map(([, word]: string[]) => word),
    ['depends', 'none'],
  )
  t.equal(pay.rule_changes.unchanged, 0)
})
