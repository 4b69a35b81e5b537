/** Label groups as they are written: members of one key, no circles, nothing of others lost, and what a change permits and cuts. */
import t, { type Test } from 'tap'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const AT = '/orgs/1/sec_policy/draft/label_groups'

/** Rule set "db": the web servers of the group Trusted (env=prod, env=test) may use the databases; Outer holds Trusted. */
async function start(t: Test): Promise<Bench> {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: {
        prod: { ip: '10.0.0.1', labels: 'role=web env=prod', mode: 'full' },
        test: { ip: '10.0.0.2', labels: 'role=web env=test', mode: 'full' },
        dev: { ip: '10.0.0.3', labels: 'role=web env=dev', mode: 'full' },
        db: { ip: '10.0.0.9', labels: 'role=db env=prod', mode: 'full' },
      },
      flows: [
        { from: 'prod', to: 'db', port: 5432, connections: 40 },
        { from: 'test', to: 'db', port: 5432, connections: 7 },
        { from: 'dev', to: 'db', port: 5432, connections: 3 },
      ],
      labels: ['loc=oslo'],
    }),
  })
  await bench.ok('create-label-group', { name: 'Trusted', labels: ['env=prod', 'env=test'] })
  await bench.ok('create-label-group', { name: 'Outer', sub_groups: ['Trusted'] })
  await bench.ok('create-ruleset', {
    name: 'db',
    scopes: [[]],
    rules: [{ providers: ['role=db'], consumers: ['labelgroup:Outer'], ingress_services: [{ port: 5432, proto: 6 }] }],
  })
  await bench.ok('provision-policy', { all_pending: true })
  bench.writes()
  return bench
}

t.test('a label group is created in draft, with the key of its members', async (t) => {
  const bench = await start(t)
  const asked = { name: 'All but prod', description: 'For tests', labels: ['env=test', 'env=dev', 'env=test'] }
  const plan = await bench.ok('create-label-group', { ...asked, sub_groups: ['Trusted'], dry_run: true })
  t.same(bench.writes(), [], 'a dry run writes nothing')
  const created = await bench.ok('create-label-group', { ...asked, sub_groups: ['Trusted'] })
  const [request] = bench.writes()
  t.same(plan.requests, [{ method: 'POST', path: AT, body: request!.body }], 'it announces what is sent')
  const { href, message, ...shown } = created
  t.equal(
    message,
    'Created the label group "All but prod" in draft. Rules can use it; it takes effect when provisioned.',
  )
  t.same(shown, {
    name: 'All but prod',
    key: 'env',
    description: 'For tests',
    labels: ['env=test', 'env=dev'],
    sub_groups: ['Trusted'],
    update_type: 'create',
  })
  t.equal((await bench.pce.labelGroups.getByReference(href)).name, 'All but prod')
})

t.test('what cannot be a label group is refused by the name of the argument, before anything is written', async (t) => {
  const bench = await start(t)
  const refused = async (args: object, code: string) => {
    const { message, argument = null } = await bench.fails('create-label-group', { name: 'New', ...args }, code)
    return [message, argument]
  }
  t.same(await refused({}, 'invalid_argument'), [
    'key: A label group without members needs the key of its labels, such as env.',
    'key',
  ])
  t.same(await refused({ key: 'bu' }, 'invalid_argument'), [
    'key: No label has the key "bu". Keys: "role", "app", "env", "loc".',
    'key',
  ])
  t.same(await refused({ labels: ['env=prod', 'loc=oslo'] }, 'invalid_argument'), [
    'labels: All members of a label group have one key, here "env"; "loc=oslo" has another.',
    'labels',
  ])
  t.same(await refused({ labels: ['loc=oslo'], sub_groups: ['Trusted'] }, 'invalid_argument'), [
    'sub_groups: All members of a label group have one key, here "loc"; the label group "Trusted" has the key "env".',
    'sub_groups',
  ])
  t.same(await refused({ labels: ['env=prd'] }, 'label_not_found'), [
    'labels: No label matches "env=prd" exactly. Did you mean "env=prod"?',
    'labels',
  ])
  t.same(await refused({ sub_groups: ['Trust'] }, 'not_found'), ['No label group is named exactly "Trust".', null])
  t.same(await refused({ name: 'Trusted', labels: ['env=dev'] }, 'already_exists'), [
    'The name "Trusted" already belongs to another label group.',
    null,
  ])
  t.same(bench.writes(), [])
})

t.test('members are added and removed, and what the call does not name stays', async (t) => {
  const bench = await start(t)
  const args = { name: 'Trusted', add: ['env=dev'], remove: ['env=test'] }
  const changed = await bench.ok('update-label-group', args)
  t.same(
    [changed.message, changed.updated_fields, changed.labels, changed.sub_groups, changed.update_type],
    [
      'Changed the label group "Trusted": labels. It takes effect when provisioned.',
      ['labels'],
      ['env=prod', 'env=dev'],
      [],
      'update',
    ],
  )
  t.equal(bench.writes().length, 1)
  const { not_in_group: missing } = await bench.fails('update-label-group', args, 'not_found')
  t.same(missing, ['env=test'], 'a member that is not there is an error')
  const again = await bench.ok('update-label-group', { name: 'Trusted', add: ['env=dev'] })
  t.equal(again.message, 'The label group "Trusted" already has these values; nothing was written.')
  t.same(bench.writes(), [])
  const [one, two] = await Promise.all([
    bench.ok('update-label-group', { name: 'Trusted', add: ['env=test'] }),
    bench.ok('update-label-group', { name: 'Trusted', remove: ['env=dev'] }),
  ])
  t.same([one.updated_fields, two.updated_fields], [['labels'], ['labels']])
  const { labels } = await bench.pce.labelGroups.getByReference(changed.href)
  t.same(
    labels!.map(({ value }) => value),
    ['prod', 'test'],
    'of two calls at once both count',
  )
})

t.test('no circle, no other key, and not two ways at once', async (t) => {
  const bench = await start(t)
  const refused = async (args: object, code: string) =>
    (await bench.fails('update-label-group', args, code)).message as string
  t.equal(
    await refused({ name: 'Trusted', add: ['labelgroup:Outer'] }, 'invalid_argument'),
    'add: "Outer" cannot be in "Trusted", since it contains the label group "Trusted" already.',
  )
  t.equal(
    await refused({ name: 'Trusted', sub_groups: ['Trusted'] }, 'invalid_argument'),
    'sub_groups: "Trusted" cannot be in "Trusted", since it is this one.',
  )
  t.equal(
    await refused({ name: 'Trusted', add: ['loc=oslo'] }, 'invalid_argument'),
    'add: All members of a label group have one key, here "env"; "loc=oslo" has another.',
  )
  t.equal(
    await refused({ name: 'Trusted', add: ['env=dev'], labels: [] }, 'conflicting_identifiers'),
    'Give all members (labels, sub_groups), or those to add and remove, not both.',
  )
  t.equal(
    await refused({ name: 'Trusted', add: ['env=dev'], remove: ['env=dev'] }, 'invalid_argument'),
    'remove: A member cannot be both added and removed.',
  )
  await bench.fails('update-label-group', { name: 'Trusted' }, 'no_update_fields')
  await bench.fails('update-label-group', { name: 'Trusted', new_name: 'Outer' }, 'already_exists')
  t.same(bench.writes(), [])
})

t.test('a dry run says what the change permits and which traffic it cuts, through outer groups as well', async (t) => {
  const bench = await start(t)
  const less = await bench.ok('update-label-group', { name: 'Trusted', remove: ['env=test'], dry_run: true })
  t.same([less.effect, less.used_by], ['narrowing', { rules: 1, in: ['db'] }])
  t.same(less.observed.connections, { cut: 7, cut_once_enforced: 0, undecided: 0, not_affected: 40 })
  t.same(less.warnings, [
    'Of the traffic seen in the last 30 days, 7 connections of 1 pair would be cut once provisioned. Largest: "test" → "db" 5432/tcp (7).',
    '1 rule uses the label group (in "db"): once provisioned, the edit may permit less traffic than today and never more.',
  ])
  t.same([less.labels, less.requests.length], [['env=prod'], 1])
  const more = await bench.ok('update-label-group', { name: 'Trusted', add: ['env=dev'], dry_run: true })
  t.same([more.effect, more.observed], ['widening', undefined])
  const name = await bench.ok('update-label-group', { name: 'Trusted', new_name: 'Known', dry_run: true })
  t.same([name.effect, name.observed, name.name], [undefined, undefined, 'Known'])
  t.same(bench.writes(), [])
})

t.test('members that a pending draft added count alone, too', async (t) => {
  const bench = await start(t)
  await bench.ok('update-label-group', { name: 'Trusted', add: ['env=dev'] })
  const { observed } = await bench.ok('update-label-group', {
    name: 'Trusted',
    remove: ['env=dev', 'env=test'],
    dry_run: true,
  })
  t.same(observed.connections, { cut: 7, cut_once_enforced: 0, undecided: 0, draft_only: 3, not_affected: 40 })
})

t.test('a deletion names who uses the group, in draft and active policy', async (t) => {
  const bench = await start(t)
  const dry = await bench.ok('delete-label-group', { name: 'Trusted', dry_run: true })
  t.same(dry.warnings, ['The PCE will refuse it while it is used by: "Outer" (draft and active).'])
  const refused = await bench.fails('delete-label-group', { name: 'Trusted' }, 'pce_error')
  t.same(
    refused.used_by.map(({ name, versions }: Json) => [name, versions]),
    [['Outer', ['draft', 'active']]],
  )
  t.equal(refused.used_by_total, 1)
  const outer = await bench.ok('delete-label-group', { name: 'Outer', dry_run: true })
  t.same(outer.warnings, ['The PCE will refuse it while it is used by: "db" (draft and active).'])
  await bench.ok('create-label-group', { name: 'Spare', key: 'env' })
  const gone = await bench.ok('delete-label-group', { name: 'Spare' })
  t.equal(gone.message, 'Deleted the label group "Spare". It had never been provisioned, so it is gone.')
})

t.test('two calls at once replace all members: the second is told', async (t) => {
  const bench = await start(t)
  const answers = await Promise.all(
    ['env=dev', 'env=prod'].map((label) => bench.answer('update-label-group', { name: 'Trusted', labels: [label] })),
  )
  const refused = answers.filter(({ error }) => error === 'already_exists')
  t.equal(refused.length, 1)
  t.same([refused[0].reason, refused[0].fields], ['changed_meanwhile', ['labels']])
  t.equal(bench.writes().length, 1)
})
