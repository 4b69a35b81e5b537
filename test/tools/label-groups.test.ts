/** get-label-groups: what is in each group, at any depth, and who uses it, on an estate whose right answers are known in full. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const AT = '/orgs/1/sec_policy/draft'

interface World {
  bench: Bench
  hrefs: Record<string, string>
}

/**
 * Groups: North {loc=oslo} and South {loc=rome}, both in Europe, which is in World {loc=lima}; Prod {env=prod}; Nobody {}. Rule sets: World is
 * the scope of one, North a consumer in two rules and a provider in one of a second, Prod a scope of a third that is off, where a rule
 * names Europe and World too.
 */
async function start(t: Test): Promise<World> {
  const bench = await startBench(t, {
    estate: handMade({ labels: ['loc=oslo', 'loc=rome', 'loc=lima', 'env=prod', 'env=test'] }),
  })
  const { pce } = bench
  const labels = new Map((await pce.labels.getAll()).map(({ key, value, href }) => [`${key}=${value}`, href]))
  const hrefs: Record<string, string> = {}
  const make = async (name: string, key: string, own: string[], inner: string[] = []) => {
    const body = {
      name,
      key,
      labels: own.map((label) => ({ href: labels.get(label)! })),
      sub_groups: inner.map((one) => ({ href: hrefs[one]! })),
    }
    hrefs[name] = (await pce.labelGroups.create(body)).href
  }
  await make('North', 'loc', ['loc=oslo'])
  await make('South', 'loc', ['loc=rome'])
  await make('Europe', 'loc', ['loc=oslo'], ['North', 'South'])
  await make('World', 'loc', ['loc=lima'], ['Europe'])
  await make('Prod', 'env', ['env=prod'])
  await make('Nobody', 'env', [])
  const rule = { providers: ['ams'], consumers: ['ams'], ingress_services: ['All Services'] }
  await bench.ok('create-ruleset', { name: 'Global', scopes: [['labelgroup:World']], rules: [rule] })
  await bench.ok('create-ruleset', {
    name: 'Northern',
    scopes: [['env=test']],
    rules: [
      { ...rule, consumers: ['labelgroup:North'] },
      { ...rule, consumers: ['labelgroup:North'], providers: ['labelgroup:North'], rule_type: 'deny' },
      rule,
    ],
  })
  await bench.ok('create-ruleset', {
    name: 'Off',
    scopes: [['labelgroup:Prod']],
    rules: [{ ...rule, consumers: ['labelgroup:Europe'], providers: ['labelgroup:World'] }],
  })
  await bench.ok('update-ruleset', { name: 'Off', enabled: false })
  return { bench, hrefs }
}

/** As answered, without hrefs. */
const usersOf = (group: Json): Json[] => group.used_by.map(({ href: _href, ...user }: Json) => user)

t.test('members by name, at any depth, and users, direct and through the groups around', async (t) => {
  const { bench, hrefs } = await start(t)
  const answer = await bench.ok('get-label-groups')
  partial(t, answer, { total_count: 6, pce_total: 6, truncated: false })
  const groups = Object.fromEntries(answer.label_groups.map((group: Json) => [group.name, group]))
  t.same(Object.keys(groups), ['North', 'South', 'Europe', 'World', 'Prod', 'Nobody'])
  const { used_by: _users, ...world } = groups.World
  t.same(world, {
    href: hrefs.World,
    name: 'World',
    key: 'loc',
    description: null,
    labels: ['loc=lima'],
    sub_groups: ['Europe'],
    all_labels: ['loc=lima', 'loc=oslo', 'loc=rome'],
    used_by_total: 2,
    update_type: 'create',
  })
  partial(t, groups.Europe, {
    labels: ['loc=oslo'],
    sub_groups: ['North', 'South'],
    all_labels: ['loc=oslo', 'loc=rome'],
  })
  t.same(groups.North.labels, ['loc=oslo'])
  t.notOk('all_labels' in groups.North || 'sub_groups' in groups.North, 'nothing is inside it')

  const off = { type: 'rule_sets', name: 'Off', rules: 1, off: true }
  const global = { type: 'rule_sets', name: 'Global', in: ['scopes'] }
  t.same(usersOf(groups.World), [global, { ...off, in: ['providers'] }])
  t.same(usersOf(groups.Europe), [
    { ...off, in: ['consumers'], also_through: ['World'] },
    { type: 'label_groups', name: 'World' },
    { ...global, through: ['World'] },
  ])
  t.same(usersOf(groups.North), [
    { type: 'rule_sets', name: 'Northern', in: ['consumers', 'providers'], rules: 2 },
    { type: 'label_groups', name: 'Europe' },
    { ...off, in: ['consumers', 'providers'], through: ['Europe', 'World'] },
    { ...global, through: ['World'] },
  ])
  t.same(usersOf(groups.South), [
    { type: 'label_groups', name: 'Europe' },
    { ...off, in: ['consumers', 'providers'], through: ['Europe', 'World'] },
    { ...global, through: ['World'] },
  ])
  t.same(usersOf(groups.Prod), [{ type: 'rule_sets', name: 'Off', in: ['scopes'], off: true }])
  partial(t, groups.Nobody, { labels: [], used_by: [], used_by_total: 0 })
  t.equal(groups.North.used_by[0].href, `${AT}/rule_sets/2`)
})

t.test('filters: part of a name, the whole, the key, a label at any depth, one group', async (t) => {
  const { bench, hrefs } = await start(t)
  const names = async (args: object) =>
    (await bench.ok('get-label-groups', args)).label_groups.map(({ name }: Json) => name)
  t.same(await names({ name: 'or' }), ['North', 'World'])
  t.same(await names({ name: 'Nort', exact: true }), [])
  t.same(await names({ name: 'North', exact: true }), ['North'])
  t.same(await names({ key: 'env' }), ['Prod', 'Nobody'])
  t.same(await names({ key: 'en' }), [])
  t.same(await names({ label: 'loc=rome' }), ['South', 'Europe', 'World'])
  t.same(await names({ label: { key: 'env', value: 'prod' }, key: 'loc' }), [])
  t.same(await names({ href: hrefs.South!.replace('draft', 'active') }), ['South'])
  t.same(await names({ fields: ['name'], name: 'Europe' }), ['Europe'])
  partial(t, await bench.fails('get-label-groups', { label: 'loc=rom' }, 'unresolved_label_filter'), {
    message: /loc=rome/,
  })
  await bench.fails('get-label-groups', { href: `${AT}/ip_lists/1` }, 'invalid_href')
  await bench.fails('get-label-groups', { href: `${AT}/label_groups/none` }, 'not_found')
  await bench.fails('get-label-groups', { href: hrefs.South!.replace('orgs/1', 'orgs/2') }, 'invalid_href')
  await bench.fails('get-label-groups', { members: true }, 'invalid_argument')
})

t.test('pages, and users beyond the first ten', async (t) => {
  const { bench } = await start(t)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await bench.ok('get-label-groups', { max_results: 2, key: 'loc', ...(cursor && { cursor }) })
    t.equal(page.total_count, 4)
    seen.push(...page.label_groups.map(({ name }: Json) => name))
    cursor = page.next_cursor
    if (cursor) await bench.fails('get-label-groups', { max_results: 2, key: 'env', cursor }, 'invalid_argument')
  } while (cursor)
  t.same(seen, ['North', 'South', 'Europe', 'World'])
  for (let at = 0; at < 12; at += 1)
    await bench.ok('create-ruleset', { name: `Set ${at}`, scopes: [['labelgroup:Nobody']] })
  const [short, full] = [
    await bench.ok('get-label-groups', { name: 'Nobody' }),
    await bench.ok('get-label-groups', { name: 'Nobody', detail_level: 'full' }),
  ]
  t.equal(short.label_groups[0].used_by.length, 10)
  t.equal(short.label_groups[0].used_by_total, 12)
  t.equal(full.label_groups[0].used_by.length, 12)
})

t.test('circles and missing groups, which a PCE refuses, end and are told', async (t) => {
  const { bench, hrefs } = await start(t)
  const group = (name: string, inner: string[]) => ({
    href: `${AT}/label_groups/${name}`,
    name,
    key: 'loc',
    labels: [],
    sub_groups: inner.map((one) => ({ href: `${AT}/label_groups/${one}`, name: one })),
  })
  const body = [group('a', ['b']), group('b', ['c', 'gone']), group('c', ['b']), group('d', ['d']), group('e', [])]
  bench.simulator.faults.add({ kind: 'status', status: 200, path: /\/draft\/label_groups$/, times: 9, body })
  const { label_groups: found } = await bench.ok('get-label-groups')
  const [a, b, , d, e] = found
  t.equal(
    a.members_note,
    `These label groups contain themselves: "b", "c". Not in this version of the policy: "${AT}/label_groups/gone". Their labels are missing here.`,
  )
  t.match(b.members_note, /contain themselves: "b", "c"\. Not in/)
  t.match(d.members_note, /contain themselves: "d"\.$/)
  t.notOk('members_note' in e)
  t.same(usersOf(b), [
    { type: 'label_groups', name: 'a' },
    { type: 'label_groups', name: 'c' },
  ])
  t.ok(hrefs.World)
})

t.test(
  'who uses them is missing with a reason where it cannot be read, and is not read where it is not asked for',
  async (t) => {
    const { bench } = await start(t)
    bench.simulator.faults.add({ kind: 'status', status: 403, path: /\/draft\/rule_sets$/, times: 1 })
    const answer = await bench.ok('get-label-groups', { name: 'World' })
    t.match(answer.used_by_error, /^Who uses them could not be read: /)
    t.notOk('used_by' in answer.label_groups[0])
    t.same(answer.label_groups[0].all_labels, ['loc=lima', 'loc=oslo', 'loc=rome'])
    bench.simulator.clearRequests()
    await bench.ok('get-label-groups', { fields: ['name', 'all_labels'] })
    t.same(
      bench.simulator.requests.filter(({ path }) => /rule_sets/.test(path)),
      [],
    )
    bench.simulator.clearRequests()
    bench.advance(61_000)
    await bench.ok('get-label-groups', { label: 'loc=oslo', policy_version: 1 })
    const { atMost } = tools.find(({ name }) => name === 'get-label-groups')!.pceRequests!
    t.ok(bench.simulator.requests.length <= atMost, `${bench.simulator.requests.length} requests`)
  },
)
