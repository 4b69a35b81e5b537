/** Label dimensions as they are written: keys that labels can have, deleted only where nothing has them. */
import t from 'tap'
import { startBench } from './harness.js'

const AT = '/orgs/1/label_dimensions'

t.test('a label dimension is created, renamed and deleted at once', async (t) => {
  const bench = await startBench(t)
  const asked = { key: 'bu', display_name: 'Business unit' }
  const plan = await bench.ok('create-label-dimension', { ...asked, dry_run: true })
  t.same(bench.writes(), [])
  const { href, ...created } = await bench.ok('create-label-dimension', asked)
  t.same(created, {
    message: 'Created the label dimension "bu". Labels can have this key from now on.',
    key: 'bu',
    display_name: 'Business unit',
  })
  t.same(plan.requests, [{ method: 'POST', path: AT, body: bench.writes()[0]!.body }])
  await bench.ok('create-label', { key: 'bu', value: 'retail' })
  bench.writes()
  const renamed = await bench.ok('update-label-dimension', { key: 'bu', display_name: 'Unit' })
  t.same(
    [renamed.updated_fields, renamed.display_name, renamed.previous],
    [['display_name'], 'Unit', { display_name: 'Business unit' }],
  )
  t.same(
    bench.writes().map(({ method, path }) => [method, path.replace(/^.*\/orgs/u, '/orgs')]),
    [['PUT', href]],
  )
  await bench.ok('delete-label', { key: 'bu', value: 'retail' })
  const deleted = await bench.ok('delete-label-dimension', { key: 'bu' })
  t.equal(deleted.message, 'Deleted the label dimension "bu".')
  await bench.fails('delete-label-dimension', { key: 'bu' }, 'not_found')
})

t.test('it is not deleted while labels, label groups or rules use it', async (t) => {
  const bench = await startBench(t)
  await bench.ok('create-label-dimension', { key: 'bu', display_name: 'Unit' })
  await bench.ok('create-label', { key: 'bu', value: 'retail' })
  await bench.ok('create-label-group', { name: 'All units', labels: ['bu=retail'] })
  bench.writes()
  const dry = await bench.ok('delete-label-dimension', { key: 'bu', dry_run: true })
  const uses = '1 label ("retail"), 1 label group ("All units")'
  t.same(dry.warnings, [`It will not be deleted while it is used by ${uses}.`])
  const refused = await bench.fails('delete-label-dimension', { key: 'bu' }, 'invalid_argument')
  t.same(
    [refused.message, refused.reason, refused.used_by],
    [`"bu" is used by ${uses}. Nothing was written.`, 'in_use', ['1 label ("retail")', '1 label group ("All units")']],
  )
  t.same(bench.writes(), [])
  bench.simulator.faults.add({ kind: 'status', path: /\/label_groups$/, method: 'GET', times: 20, status: 403 })
  const unread = await bench.fails('delete-label-dimension', { key: 'bu' }, 'invalid_argument')
  t.same(
    [unread.used_by, unread.used_by_unread.length],
    [['1 label ("retail")', 'label groups'], 2],
    "the PCE's record counts",
  )
  t.same(bench.writes(), [])
  bench.simulator.faults.clear()
  await bench.ok('delete-label-group', { name: 'All units' })
  await bench.ok('delete-label', { key: 'bu', value: 'retail' })
  t.equal((await bench.ok('delete-label-dimension', { key: 'bu' })).message, 'Deleted the label dimension "bu".')
})

t.test('what is there already, what is built in, and what is not there', async (t) => {
  const bench = await startBench(t)
  const fails = async (tool: string, args: object, code: string) =>
    (await bench.fails(tool, args, code)).message as string
  t.equal(
    await fails('create-label-dimension', { key: 'env', display_name: 'Stage' }, 'already_exists'),
    'The key "env" already belongs to another label dimension.',
  )
  t.equal(
    await fails('create-label-dimension', { key: 'bu', display_name: 'Location' }, 'already_exists'),
    'The display name "Location" already belongs to another label dimension.',
  )
  t.equal(
    await fails('update-label-dimension', { key: 'env', display_name: 'Location' }, 'already_exists'),
    'The display name "Location" already belongs to the label dimension "loc".',
  )
  t.equal(
    await fails('delete-label-dimension', { key: 'env' }, 'invalid_argument'),
    'The label dimension "env" is built in, and stays. Nothing was written.',
  )
  t.equal(
    await fails('update-label-dimension', { key: 'en', display_name: 'Stage' }, 'not_found'),
    'No label dimension has the key "en". Keys: "role", "app", "env", "loc".',
  )
  const { warnings } = await bench.ok('create-label-dimension', { key: 'Env', display_name: 'Stage', dry_run: true })
  t.same(warnings, ['"Env" differs only in case from the key "env".'])
  t.same(bench.writes(), [])
  const both = await Promise.all(
    [1, 2].map(() => bench.answer('create-label-dimension', { key: 'bu', display_name: 'Unit' })),
  )
  t.same(
    both.map(({ error = 'none' }) => error).sort(),
    ['already_exists', 'none'],
    'of two calls at once one creates it',
  )
})
