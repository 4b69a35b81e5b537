/** label-workloads: which workloads, what becomes of their labels, and what is said of it before and after. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

const ESTATE = handMade({
  hosts: {
    'pay-web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' },
    'pay-web-2': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'selective' },
    'pay-db-1': { ip: '10.0.0.3', labels: 'app=pay env=dev role=db' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod loc=here' },
    bare: { ip: '10.0.2.1', managed: false },
  },
  labels: ['role=app', 'env=test'],
  ruleSets: [
    {
      name: 'pay prod',
      scope: 'app=pay env=prod',
      allow: [
        { from: 'role=web', to: 'role=db' },
        { from: 'ams', to: 'role=web' },
        { from: 'role=db', to: 'role=db', enabled: false },
      ],
    },
    { name: 'all prod', scope: 'env=prod', deny: [{ from: 'any', to: 'ams' }] },
    { name: 'everywhere', scope: '', allow: [{ from: 'ams', to: 'ams' }] },
  ],
})

/** Labels by name, as the PCE has them. */
function labelsOf({ simulator }: Bench): Record<string, string> {
  const workloads: Json[] = simulator.state.find('/orgs/1/workloads') as Json
  const known = new Map<string, Json>(
    (simulator.state.find('/orgs/1/labels') as Json).map((label: Json) => [label.href, label]),
  )
  return Object.fromEntries(
    workloads.map(({ name, labels }) => {
      const texts = labels.map(({ href }: Json) => `${known.get(href).key}=${known.get(href).value}`)
      return [name, texts.sort().join(' ')]
    }),
  )
}
const BEFORE = {
  'pay-web-1': 'app=pay env=prod role=web',
  'pay-web-2': 'app=pay env=prod',
  'pay-db-1': 'app=pay env=dev role=db',
  'crm-1': 'app=crm env=prod loc=here',
  bare: '',
}
const rowsOf = ({ changes }: Json): string[] =>
  changes.data.map((row: string[]) =>
    row.filter((_, at) => !['href', 'keeps'].includes(changes.columns[at])).join(' | '),
  )

t.test('set, add and remove by key, and no other label is touched', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const workloads = ['pay-web-1', 'pay-web-2', 'pay-db-1', 'bare']
  const args = { workloads, set: ['env=test'], add: ['role=app'], remove: ['loc', 'app=crm'] }
  const plan = await bench.ok('label-workloads', { ...args, dry_run: true })
  t.same(
    plan.changes.data.map((row: string[]) => row[plan.changes.columns.indexOf('keeps')]),
    ['app=pay, role=web', 'app=pay', 'app=pay, role=db', ''],
    'the labels that stay',
  )
  t.same(rowsOf(plan), [
    'pay-web-1 | env=prod | env=test',
    'pay-web-2 | env=prod, role=- | env=test, role=app',
    'pay-db-1 | env=dev | env=test',
    'bare | env=-, role=- | env=test, role=app',
  ])
  t.same(labelsOf(bench), BEFORE, 'a dry run writes nothing')
  bench.writes()

  const done = await bench.ok('label-workloads', args)
  const kept = 'Kept, since add replaces nothing: "role=db" (1), "role=web" (1).'
  partial(t, done, {
    message: `Changed the labels of 4 workloads: set "env=test" (4), "role=app" (2). ${kept}`,
    ...{ matched: 4, changed: 4, already: 0, left_alone: 0, kept: { 'role=db': 1, 'role=web': 1 } },
  })
  t.same(done.outcomes, { updated: 4, refused: 0, not_done: 0, unknown: 0, differs: 0 })
  t.same(
    rowsOf(done),
    rowsOf(plan).map((row) => `${row} | updated`),
  )
  t.same(labelsOf(bench), {
    'pay-web-1': 'app=pay env=test role=web',
    'pay-web-2': 'app=pay env=test role=app',
    'pay-db-1': 'app=pay env=test role=db',
    'crm-1': 'app=crm env=prod loc=here',
    bare: 'env=test role=app',
  })
  const [write, ...others] = bench.writes()
  t.same(others, [])
  t.same([{ method: write!.method, path: write!.path.replace('/api/v2', ''), body: write!.body }], plan.requests)

  const again = await bench.ok('label-workloads', args)
  partial(t, again, {
    message: `Nothing to do: 2 workloads already as asked for; 2 workloads left alone; ${kept.toLowerCase()}`,
    ...{ matched: 4, changed: 0, already: 2, left_alone: 2 },
  })
  t.same(bench.writes(), [], 'the same call again writes nothing')

  const removed = await bench.ok('label-workloads', { workloads: ['crm-1', 'bare'], remove: ['loc', 'app=crm'] })
  t.equal(
    removed.message,
    'Changed the labels of 1 workload: removed "app=crm" (1), "loc=here" (1). 1 workload already as asked for.',
  )
  t.equal(labelsOf(bench)['crm-1'], 'env=prod')
})

t.test('a dry run says what it does to the policy in force', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const workloads = ['pay-web-1', 'pay-web-2', 'pay-db-1', 'crm-1']
  const { effect, warnings } = await bench.ok('label-workloads', { workloads, set: ['env=dev'], dry_run: true })
  const set = (name: string, id: number, numbers: object) => ({
    name,
    href: `/orgs/1/sec_policy/active/rule_sets/${id}`,
    ...{ enter: 0, leave: 0, undecided: 0, rules_gained: 0, rules_lost: 0, by_type: {} },
    ...numbers,
  })
  t.same(effect, {
    enforced: 2,
    left_all_scopes: 3,
    rules_skipped: false,
    rule_sets_total: 2,
    rule_sets: [
      set('all prod', 2, { leave: 3, rules_lost: 1, by_type: { deny: { gained: 0, lost: 1 } } }),
      set('pay prod', 1, { leave: 2, rules_lost: 2, by_type: { allow: { gained: 0, lost: 2 } } }),
    ],
  })
  t.same(warnings, [
    'Labels are policy, at once and without provisioning: the workloads leave the scopes of 2 rule sets, change which rules apply to them in 2 rule sets.',
    '1 deny rule no longer names some of them (in "all prod"): traffic that only these rules blocked may pass.',
    '2 allow rules no longer name some of them (in "pay prod"): traffic that only these rules allowed is cut where the workloads enforce.',
    'How much of the observed traffic this cuts was not looked at: get-traffic-flows with decide_by active shows what these workloads have now.',
    '2 of them enforce (selective or full mode).',
    '3 of them will be in the scope of no rule set that has one.',
  ])

  const role = await bench.ok('label-workloads', { workloads: ['pay-web-2'], add: ['role=web'], dry_run: true })
  t.same(
    role.effect.rule_sets,
    [set('pay prod', 1, { rules_gained: 2, by_type: { allow: { gained: 2, lost: 0 } } })],
    'a role is no scope, but rules name it',
  )
  const enter = await bench.ok('label-workloads', { workloads: ['pay-db-1'], set: ['env=prod'], dry_run: true })
  t.same(enter.effect.rule_sets, [
    set('all prod', 2, { enter: 1, rules_gained: 1, by_type: { deny: { gained: 1, lost: 0 } } }),
    set('pay prod', 1, { enter: 1, rules_gained: 2, by_type: { allow: { gained: 2, lost: 0 } } }),
  ])

  bench.simulator.faults.add({ kind: 'status', path: '/orgs/1/sec_policy/active/rule_sets', times: 9, status: 403 })
  const blind = await bench.ok('label-workloads', { workloads: ['bare'], set: ['env=dev'], dry_run: true })
  t.equal(blind.effect, undefined)
  t.equal(blind.warnings.length, 1)
  t.match(blind.warnings[0], /^The policy could not be read, so what the new labels do to it is not known/)
})

t.test('a selection is written only within a number that the caller has seen', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const args = { selection: { labels: ['app=pay', 'env=prod'] }, set: ['role=app'] }
  const plan = await bench.ok('label-workloads', { ...args, dry_run: true })
  t.equal(
    plan.message,
    'Would change the labels of 2 of 2 workloads: set "role=app" (2). To write, repeat it with max_matches 2.',
  )
  partial(t, await bench.fails('label-workloads', args, 'invalid_argument'), { argument: 'max_matches', matched: 2 })
  partial(t, await bench.fails('label-workloads', { ...args, max_matches: 1 }, 'invalid_argument'), { matched: 2 })
  t.same(labelsOf(bench), BEFORE)
  t.equal((await bench.ok('label-workloads', { ...args, max_matches: 2 })).outcomes.updated, 2)

  const without = { selection: { without: ['loc', 'role'], managed: true }, set: ['loc=here'], dry_run: true }
  t.same(rowsOf(await bench.ok('label-workloads', without)), [
    'pay-web-1 | loc=- | loc=here',
    'pay-web-2 | loc=- | loc=here',
    'pay-db-1 | loc=- | loc=here',
  ])
  t.equal((await bench.ok('label-workloads', without)).matched, 4)
})

t.test('a dry run shows what stays as it is, within the budget', async (t) => {
  const bench = await startBench(t, { estate: ESTATE, budget: 4000 })
  const args = { workloads: ['pay-web-1', 'pay-web-2', 'pay-db-1'], add: ['role=web'], dry_run: true }
  const { unchanged, changes, ...plan } = await bench.ok('label-workloads', args)
  t.same(
    [unchanged.columns, ...unchanged.data].map(([name, _href, labels]) => [name, labels]),
    [
      ['workload', 'labels'],
      ['pay-web-1', 'app=pay, env=prod, role=web'],
      ['pay-db-1', 'app=pay, env=dev, role=db'],
    ],
  )
  t.same([rowsOf({ changes }), plan.already, plan.left_alone], [['pay-web-2 | role=- | role=web'], 1, 1])
  t.notOk('unchanged' in (await bench.ok('label-workloads', { ...args, dry_run: false })), 'not after the write')
  for (let n = 0; n < 60; n += 1)
    await bench.pce.workloads.create({ name: `same-${n}`, interfaces: [{ name: 'eth0', address: '10.8.0.1' }] })
  const selection = { name: 'same-' }
  const many = await bench.ok('label-workloads', { selection, remove: ['role=web'], dry_run: true })
  t.equal(many.already, 60)
  t.ok(many.unchanged.data.length > 0 && JSON.stringify(many).length <= 4000, 'the counts count all')
  const large = await startBench(t, { estate: ESTATE, budget: 1000 })
  t.notOk('unchanged' in (await large.ok('label-workloads', args)), 'what changes comes first')
})

t.test('a table says for each workload what its labels are to be', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const csv = ['\uFEFF', 'Hostname;env;role', 'pay-web-1;test;', '"pay-db-1";; gone', 'bare;dev;app', ''].join('\r\n')
  const done = await bench.ok('label-workloads', { csv, remove_token: ' gone ' })
  t.same(rowsOf(done), [
    'pay-web-1 | env=prod | env=test | updated',
    'pay-db-1 | role=db | role=- | updated',
    'bare | env=-, role=- | env=dev, role=app | updated',
  ])
  const [one] = bench.simulator.state.find('/orgs/1/workloads') as Json
  const both = `href,name,loc\n${one.href},pay-web-1,here\n,crm-1,here\n`
  partial(t, await bench.ok('label-workloads', { csv: both }), { matched: 2, changed: 1, already: 1 })
  const blank = await bench.fails('label-workloads', { csv: both, remove_token: ' ' }, 'invalid_argument')
  partial(t, blank, { argument: 'remove_token' })
})

t.test('a name that is none is told with what was meant, in whole sentences', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const args = { workloads: ['pay-web'], set: ['env=test'] }
  const { message } = await bench.fails('label-workloads', args, 'not_found')
  t.match(message, /; did you mean "pay-web-1".*\? Nothing was written\.$/)
})

t.test('everything wrong with a table is named by line and column, before anything is written', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const wrong = async (csv: string, more: object = {}): Promise<string> =>
    (await bench.fails('label-workloads', { csv, ...more }, 'invalid_argument')).message
  t.equal(
    await wrong('name,app,env\npay-web-1,pya,prod\npay-web-9,pay,prod\npay-db-1,pay\ncrm-1,crm,\n,pay,\ncrm-1,,\n'),
    'csv, line 4: it has 2 cells, the header 3; line 6: it names no workload. Nothing was written.',
  )
  t.equal(
    await wrong('name,app,env\npay-web-1,pya,prod\npay-web-9,pay,prod\ncrm-1,crm,\ncrm-1,,Prod\n'),
    'csv, line 2, column app: no label is exactly "app=pya". Did you mean "app=pay"?; ' +
      'line 3, column name: no workload is named exactly "pay-web-9"; did you mean "pay-web-1"?; ' +
      'line 5, column env: no label is exactly "env=Prod". Did you mean "env=prod"?; ' +
      'line 5: it names the same workload as line 4. Nothing was written.',
  )
  t.match(
    await wrong('nmae,app\nx,pay\n'),
    /^csv, line 1: "nmae" names no column: what names the workloads is called href, name, hostname; call it name\./,
  )
  t.match(
    await wrong('server,app\nx,pay\n'),
    /^csv, line 1: "server" names no column: [^;]*; call it name\. Nothing was written\.$/,
  )
  t.match(await wrong('host,app\nx,pay\n'), /; call it hostname\./)
  t.notOk('problems' in (await bench.fails('label-workloads', { csv: 'server,app\nx,pay\n' }, 'invalid_argument')))
  t.match(await wrong('name,app,app\nx,pay,pay\n'), /the column is there twice/)
  t.match(await wrong('app,env\npay,prod\n'), /no column href, name, hostname names the workloads/)
  t.match(await wrong('name\nbare\n'), /no column is the key of a label/)
  t.match(await wrong(`name,${'x,'.repeat(100)}\nbare\n`), /line 1: the header has 102 columns, at most 100 are read/)
  t.match(await wrong('name,app\n"bare,pay\n'), /^csv, line \d+: Quote Not Closed/)
  t.match(await wrong('name,app\n'), /has a header and no line/)
  const [one] = bench.simulator.state.find('/orgs/1/workloads') as Json
  t.match(await wrong(`href,hostname,app\n${one.href},bare,pay\n`), /line 2, column hostname: the workload of its href/)
  t.same(bench.writes(), [])
  t.same(labelsOf(bench), BEFORE)
})

t.test('what cannot be meant is refused before anything is written', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const fails = (args: object, code: string) => bench.fails('label-workloads', args, code)
  const set = ['role=web']
  await fails({ set }, 'missing_identifier')
  await fails({ workloads: ['bare'], csv: 'name,app\nbare,pay', set }, 'conflicting_identifiers')
  await fails({ csv: 'name,app\nbare,pay', set }, 'conflicting_identifiers')
  partial(t, await fails({ workloads: ['bare'], dry_run: true }, 'no_update_fields'), {
    hint: /set: .* add: .* remove: /,
  })
  await fails({ selection: {}, set }, 'invalid_argument')
  await fails({ selection: { exact: true }, set }, 'invalid_argument')
  const nobody = await fails({ selection: { labels: ['role=app'] }, set, dry_run: true }, 'no_workloads')
  t.match(nobody.hint, /^get-workloads takes the same filters/)
  t.equal(
    (await fails({ selection: { name: 'nobody' }, set }, 'no_workloads')).message,
    'The selection matches no workload.',
  )
  await bench.pce.workloads.create({ hostname: 'queue-1', interfaces: [{ name: 'eth0', address: '10.7.0.1' }] })
  bench.writes()
  const hidden = await fails({ selection: { name: 'queue' }, set, max_matches: 9 }, 'no_workloads')
  t.equal(
    hidden.message,
    'The selection matches no workload. 1 matches by hostname, which consoles show where a name is unset.',
  )
  await fails({ workloads: ['bare'], set: ['role=web'], remove: ['role'] }, 'invalid_argument')
  await fails({ workloads: ['bare'], set: ['role=web', 'role=db'] }, 'invalid_argument')
  await fails({ workloads: ['bare'], remove: ['rloe'] }, 'not_found')
  await fails({ workloads: ['pay-web'], set }, 'not_found')
  await fails({ workloads: ['bare', '/orgs/2/workloads/1'], set }, 'not_found')
  partial(t, await fails({ workloads: ['bare'], set: ['role=wbe'] }, 'label_not_found'), {
    message: 'set: no label is exactly "role=wbe". Did you mean "role=web"?',
    hint: 'create_missing_labels makes labels that are new.',
  })
  const bare = await fails({ workloads: ['bare'], set: ['web'] }, 'label_not_found')
  t.equal(bare.hint, 'Give labels as key=value, set: ["role=web"]; get-labels lists them.')
  t.same(bench.writes(), [])
})

t.test('labels that do not exist are made only where that is asked for', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const args = { workloads: ['bare', 'crm-1'], set: ['role=queue', 'loc=there'], create_missing_labels: true }
  const plan = await bench.ok('label-workloads', { ...args, dry_run: true })
  t.match(plan.message, /New labels: "role=queue", "loc=there"\.$/)
  const done = await bench.ok('label-workloads', args)
  t.same(
    done.labels_created.map(({ key, value }: Json) => `${key}=${value}`),
    ['role=queue', 'loc=there'],
  )
  partial(t, labelsOf(bench), { bare: 'loc=there role=queue', 'crm-1': 'app=crm env=prod loc=there role=queue' })
  const csv = 'name,app\nbare,fresh\n'
  await bench.fails('label-workloads', { csv }, 'invalid_argument')
  await bench.ok('label-workloads', { csv, create_missing_labels: true })
  t.equal(labelsOf(bench)['bare'], 'app=fresh loc=there role=queue')
})

t.test('two workloads of one name are no reference to either', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  for (const address of ['10.7.0.1', '10.7.0.2'])
    await bench.pce.workloads.create({ name: 'twin', interfaces: [{ name: 'eth0', address }] })
  const { message } = await bench.fails('label-workloads', { workloads: ['twin'], set: ['role=web'] }, 'ambiguous_name')
  t.match(message, /2 workloads are named "twin": .*; give the href/)
})

t.test('what the PCE refuses of some is told, and the others are done', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const hrefs = (bench.simulator.state.find('/orgs/1/workloads') as Json).map(({ href }: Json) => href)
  const { faults } = bench.simulator
  const body = [
    { href: hrefs[0], status: 'updated' },
    { href: hrefs[1], status: 'validation_failure', token: 'odd_token', message: 'Not this one' },
  ]
  faults.add({ kind: 'status', path: '/orgs/1/workloads/bulk_update', times: 1, status: 200, body })
  const answer = await bench.ok('label-workloads', { workloads: ['pay-web-1', 'pay-web-2'], set: ['role=app'] })
  t.equal(answer.message, 'Changed the labels of 0 of 2 workloads; 2 are not as asked for.')
  t.same(rowsOf(answer), [
    'pay-web-1 | role=web | role=app | differs: it has "app=pay", "env=prod", "role=web"',
    'pay-web-2 | role=- | role=app | refused: "Not this one"',
  ])
})
