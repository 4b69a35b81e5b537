/** compare-draft-active at the standard level of detail: what it leaves out, how much it shows, and which changes. */
import t from 'tap'
import { partial } from '../partial.js'
import { connect, startBench, type Bench, type Json } from './harness.js'

const TOOL = 'compare-draft-active'
const STANDARD_BYTES = 12_000
const bytes = (answer: Json) => Buffer.byteLength(JSON.stringify(answer))
const APPS = [
  'payments',
  'ordering',
  'fraud-detection',
  'identity',
  'billing',
  'ledger',
  'crm',
  'erp',
  'inventory',
  'hr-portal',
]

/** The rules of an application as teams write them: tiers, an outside list, a probe, and one deny rule. */
const RULES = [
  { consumers: ['role=web'], providers: ['role=api'], services: [{ port: 8443, proto: 'tcp' }] },
  { consumers: ['role=api'], providers: ['role=db'], services: [{ port: 5432, proto: 'tcp' }] },
  {
    consumers: ['iplist:Branch offices'],
    providers: ['role=web'],
    services: [{ port: 443, proto: 'tcp' }],
    unscoped_consumers: true,
  },
  {
    rule_type: 'deny',
    consumers: ['role=jump'],
    providers: ['role=db'],
    services: [{ port: 22, proto: 'tcp' }],
  },
]

const write = async ({ ok }: Bench, rules = RULES) => {
  for (const app of APPS)
    await ok('create-ruleset', { name: `${app} in prod`, scopes: [[`app=${app}`, 'env=prod']], rules })
}

const created = (answer: Json): Json[] => answer.changes.created

t.test(
  'ten new rule sets are shown within 12 kB, each rule as a line and what differs from the defaults',
  async (t) => {
    const bench = await startBench(t)
    await write(bench)
    const answer = await bench.ok(TOOL)
    t.ok(bytes(answer) <= STANDARD_BYTES, `${bytes(answer)} bytes`)
    partial(t, answer, {
      total_pending_changes: 10,
      created_count: 10,
      truncated: false,
      left_out: /detail_level full/,
    })
    const first = created(answer).find(({ name }) => name === 'payments in prod')
    t.same(
      first.fields.map(({ field }: Json) => field),
      ['scopes'],
      'without the name, which is said, and enabled, which is the default',
    )
    t.same(first.rules.map(({ rule_type: type, rule, fields }: Json) => [type, rule, fields]).toSorted(), [
      ['allow', 'Branch offices to role=web, 443/tcp', [{ field: 'unscoped_consumers', draft: true }]],
      ['allow', 'role=api to role=db, 5432/tcp', undefined],
      ['allow', 'role=web to role=api, 8443/tcp', undefined],
      ['deny', 'role=jump to role=db, 22/tcp', undefined],
    ])
    const full = await bench.ok(TOOL, { detail_level: 'full', name: 'payments in prod' })
    const whole = created(full)[0]
    t.same(
      whole.fields.map(({ field }: Json) => field),
      ['enabled', 'name', 'scopes'],
    )
    t.ok(whole.rules.every(({ fields }: Json) => fields.some(({ field }: Json) => field === 'enabled')))
    t.notOk('left_out' in full)
  },
)

t.test('rule sets of many rules share the 12 kB, and say what was cut and how to see it', async (t) => {
  const bench = await startBench(t)
  const many = Array.from({ length: 25 }, (_, n) => ({
    consumers: ['role=web'],
    providers: ['role=api'],
    services: [{ port: 9000 + n, proto: 'tcp' }],
  }))
  await write(bench, many)
  const answer = await bench.ok(TOOL)
  t.ok(bytes(answer) <= STANDARD_BYTES, `${bytes(answer)} bytes`)
  t.equal(created(answer).length, 10)
  t.match(answer.summary, /10 of them cut, see omitted: by href alone one is shown further\.$/)
  for (const { rules, omitted } of created(answer))
    t.match(omitted, new RegExp(`; ${rules.length} of 25 rules are shown`))
  const alone = await bench.ok(TOOL, { href: created(answer)[0].href })
  t.equal(created(alone)[0].rules.length, 25)
  t.notOk('omitted' in created(alone)[0])
})

t.test('a rule keeps what its line does not say', async (t) => {
  const bench = await startBench(t)
  const { ruleset } = await bench.ok('create-ruleset', { name: 'odd', scopes: [['app=payments', 'env=prod']] })
  const { rule: written } = await bench.ok('create-rule', {
    ruleset_href: ruleset.href,
    consumers: ['role=web', 'role=api', 'role=db', 'role=cache', 'role=worker'],
    providers: ['ams'],
    services: [{ port: 443, proto: 'tcp' }],
    description: 'until June',
  })
  await bench.ok('update-sec-rule', { href: written.href, enabled: false })
  const [rule] = created(await bench.ok(TOOL))[0].rules
  t.same(
    rule.fields.map(({ field }: Json) => field),
    ['consumers', 'description', 'enabled'],
    'a side that the line cuts, a text, and a rule that is switched off',
  )
})

t.test('selects changes by object and author, and refuses names and hrefs of nothing', async (t) => {
  const bench = await startBench(t)
  const { ok, fails, pce, simulator } = bench
  const list = await pce.ipLists.create({ name: 'Plants', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  const same = await pce.services.create({ name: 'Plants', service_ports: [{ port: 9000, proto: 6 }] })
  await pce.provisionPolicyChanges('start', simulator.state.pendingHrefs())
  await pce.ipLists.update(list.href, { name: 'Factories' })
  await pce.services.update(same.href, { description: 'of plants' })
  await pce.ipLists.create({ name: 'New', ip_ranges: [{ from_ip: '203.0.113.7' }] })
  const names = async (args: object) =>
    Object.values((await ok(TOOL, args)).changes as Record<string, Json[]>)
      .flat()
      .map(({ type, name }) => `${type} ${name}`)
      .toSorted()

  t.same(await names({ name: 'Factories' }), ['ip_lists Factories'])
  t.same(await names({ name: 'Plants' }), ['ip_lists Factories', 'services Plants'], 'by the name in force, too')
  t.same(await names({ name: 'Plants', resource_type: 'services' }), ['services Plants'])
  t.same(await names({ href: list.href.replace('/draft/', '/active/') }), ['ip_lists Factories'])
  t.equal((await names({ author: 'admin@example.com' })).length, 3)
  t.equal((await names({ author: '/users/1' })).length, 3)
  const before = simulator.requests.length
  partial(t, await ok(TOOL, { author: 'admin' }), {
    total_pending_changes: 0,
    total_unfiltered: 3,
    message: 'None of these 3 changes is by "admin"; they are by "admin@example.com".',
  })
  t.equal(simulator.requests.length - before, 2, 'the list and its author: no object is read')
  partial(t, await ok(TOOL, { name: 'All Services' }), {
    message: 'Nothing named "All Services" is pending; 3 other changes.',
  })
  partial(t, await fails(TOOL, { name: 'Factor' }, 'not_found'), { name: 'Factor', near_names: ['Factories'] })
  const gone = '/orgs/1/sec_policy/draft/ip_lists/4711'
  partial(t, await fails(TOOL, { href: gone }, 'not_found'), { href: gone })
  await fails(TOOL, { href: '/orgs/1/labels/1' }, 'invalid_argument')
})

t.test(
  'of a list that changes, what differs is shown and the rest counted, and detail_level full has all of it',
  async (t) => {
    const bench = await startBench(t)
    const { ok, pce, simulator } = bench
    const range = (n: number) => ({ from_ip: `10.0.${n}.0/24` })
    const { href } = await pce.ipLists.create({
      name: 'Plants',
      ip_ranges: Array.from({ length: 30 }, (_, n) => range(n)),
    })
    await pce.provisionPolicyChanges('start', simulator.state.pendingHrefs())
    // The first goes, two come, and one is written in another way.
    const stored = [{ ...range(1), exclusion: false }, ...Array.from({ length: 30 }, (_, n) => range(n + 2))]
    await pce.ipLists.update(href, { ip_ranges: stored })
    const shown = async (args: object) => ((await ok(TOOL, args)).changes.updated as Json[])[0]
    t.same((await shown({})).fields, [
      { field: 'ip_ranges', draft: [range(30), range(31)], active: [range(0)], same: 29 },
    ])
    const [whole] = (await shown({ detail_level: 'full' })).fields
    t.same([whole.draft.length, whole.active.length, 'same' in whole], [31, 30, false])
  },
)

t.test('what all changes share is said once: their author, and the effect of what is new', async (t) => {
  const bench = await startBench(t, { users: [{ role: 'owner' }] })
  const { ok, simulator } = bench
  await write(bench)
  const answer = await ok(TOOL)
  t.same(answer.updated_by, { href: '/users/1', name: 'admin@example.com' })
  for (const { rules, effect, effect_by_rule_type: byType, ...change } of created(answer)) {
    t.notOk('updated_by' in change)
    t.same([effect, byType], [undefined, { allow: 'widening', deny: 'narrowing' }])
    t.same(
      rules.map(({ rule_type: type, ...rule }: Json) => [type, 'effect' in rule]),
      rules.map(({ rule_type: type }: Json) => [type, false]),
    )
  }
  const full = await ok(TOOL, { detail_level: 'full', name: 'payments in prod' })
  t.notOk('updated_by' in full)
  t.same(created(full)[0].updated_by, answer.updated_by)
  t.same(
    created(full)[0]
      .rules.map(({ rule_type: type, effect }: Json) => `${type} ${effect}`)
      .toSorted(),
    ['allow widening', 'allow widening', 'allow widening', 'deny narrowing'],
  )
  const columns = await ok(TOOL, { fields: ['name', 'updated_by'] })
  t.notOk('updated_by' in columns, 'a column that is asked for stays in its rows')
  t.same(created(columns)[0].updated_by, answer.updated_by)
  // One that somebody else wrote: each says whose it is.
  const other = connect({ orgId: 1, credentials: simulator.keys[0]! }, simulator.url)
  t.teardown(() => other.close())
  await other.ipLists.create({ name: 'Plants', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  const both = await ok(TOOL)
  t.notOk('updated_by' in both)
  const authors = created(both).map(({ updated_by: by }: Json) => by.href)
  t.same([authors.length, new Set(authors).size], [11, 2])
})
