/** Workloads, changed, deleted and counted: the right one or none, labels and all, and nothing left over when it fails. */
import t, { type Test } from 'tap'
import { ToolError } from '../../schemas/errors.js'
import { writeWithRollback, type Written } from '../../domain/drafts/write-with-rollback.js'
import { partial } from '../partial.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { handMade } from './hand-made.js'
import { benchOf, startBench, type Bench, type Json } from './harness.js'

/** A refusal that leaves no trace at the PCE. */
async function refused(t: Test, bench: Bench, tool: string, args: object, code: string): Promise<Json> {
  bench.writes()
  const error = await bench.fails(tool, args, code)
  t.same(bench.writes(), [], 'nothing was written')
  return error
}

const host = (name: string, address = '10.99.0.1') => ({
  name,
  hostname: name,
  interfaces: [{ name: 'eth0', address }],
})
const NOPE = { status: 406, body: [{ token: 'nope', message: 'Nope' }] }
const PUTS = { path: /\/workloads\/[^/]+$/, method: 'PUT' }
const sorted = (labels: string[]) => [...labels].sort()

t.test('update-workload', async (t) => {
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const everything = await pce.workloads.getAll()
  const managed = everything.find((workload) => workload.managed === true)!
  const { href } = await pce.workloads.create(host('store-db'))
  await pce.workloads.create(host('store-db-2'))
  await pce.workloads.create(host('old-store-db'))

  await t.test("sends the given fields under the PCE's names, reads back, and reports previous values", async (t) => {
    bench.writes()
    const answer = await bench.ok('update-workload', {
      href,
      description: 'Second floor',
      hostname: 'store-db.example.com',
      ip_addresses: ['10.99.0.2', '2001:db8::2'],
    })
    partial(t, bench.writes(), [{ method: 'PUT', path: `/api/v2${href}` }])
    const put = simulator.requests.filter(({ method }) => method === 'PUT').at(-1)!
    t.same(put.body, {
      description: 'Second floor',
      hostname: 'store-db.example.com',
      interfaces: [
        { name: 'eth0', address: '10.99.0.2' },
        { name: 'eth1', address: '2001:db8::2' },
      ],
    })
    t.same(answer.updated_fields, ['description', 'hostname', 'interfaces'])
    partial(t, answer.previous, { hostname: 'store-db', interfaces: [{ address: '10.99.0.1' }] })
    t.same(Object.keys(answer.previous).sort(), ['description', 'hostname', 'interfaces'])
    t.same(answer.workload, {
      href,
      name: 'store-db',
      hostname: 'store-db.example.com',
      interfaces: put.body && (put.body as Json).interfaces,
      labels: [],
      managed: false,
      enforcement_mode: 'visibility_only',
      description: 'Second floor',
    })
    t.equal(answer.workload.href, href)
    t.notOk('differences' in answer)
    partial(t, simulator.state.find(href), { description: 'Second floor', hostname: 'store-db.example.com' })
  })

  await t.test('does not resend unchanged values', async (t) => {
    bench.writes()
    const args = { href, description: 'Second floor', ip_addresses: ['10.99.0.2', '2001:db8::2'] }
    partial(t, await bench.ok('update-workload', args), { updated_fields: [], message: /already/ })
    t.same(bench.writes(), [])
    const answer = await bench.ok('update-workload', { ...args, description: '' })
    t.same(answer.updated_fields, ['description'], 'an empty text is a change')
    t.equal(answer.previous.description, 'Second floor')
  })

  await t.test('name matches exactly although the PCE matches substrings; otherwise by host name', async (t) => {
    partial(t, await bench.ok('update-workload', { name: 'store-db', description: 'Exactly this' }), {
      workload: { href },
    })
    const byHost = { name: managed.hostname!, description: 'By host name' }
    partial(t, await bench.ok('update-workload', byHost), { workload: { href: managed.href, managed: true } })
    const error = await refused(t, bench, 'update-workload', { name: 'store-d', description: 'x' }, 'not_found')
    t.ok(error.near_names.includes('store-db'), JSON.stringify(error))
    await refused(t, bench, 'update-workload', { name: 'Store-DB', description: 'x' }, 'not_found')
  })

  await t.test('lists several of one name by host name and changes none', async (t) => {
    const twins = await Promise.all([
      pce.workloads.create({ ...host('twin'), hostname: 'twin-a' }),
      pce.workloads.create({ ...host('twin'), hostname: 'twin-b' }),
    ])
    const error = await refused(t, bench, 'update-workload', { name: 'twin', description: 'x' }, 'ambiguous_name')
    t.same(
      error.candidates.sort((a: Json, b: Json) => (a.hostname < b.hostname ? -1 : 1)),
      twins.map((twin, index) => ({ href: twin.href, name: 'twin', hostname: `twin-${'ab'[index]}` })),
    )
    await pce.workloads.create({ ...host('first'), hostname: 'shared-host' })
    await pce.workloads.create({ ...host('second'), hostname: 'shared-host' })
    const byHost = await refused(t, bench, 'update-workload', { name: 'shared-host', new_name: 'x' }, 'ambiguous_name')
    t.same(byHost.candidates.map(({ name }: Json) => name).sort(), ['first', 'second'], 'by the names they have')
  })

  await t.test('labels replace existing ones, in any form; missing ones are created', async (t) => {
    const first = await bench.ok('update-workload', { href, labels: [{ key: 'app', value: 'pay' }, 'env=prod'] })
    t.same(sorted(first.workload.labels), ['app=pay', 'env=prod'], 'not app=payments, of which pay is a part')
    t.notOk('labels_created' in first)
    const [env] = await pce.labels.getAll('draft', null, { params: { key: 'env', value: 'prod' } })
    const second = await bench.ok('update-workload', {
      href,
      labels: [env!.href, 'loc=cellar', { key: 'loc', value: 'cellar' }],
    })
    t.same(sorted(second.workload.labels), ['env=prod', 'loc=cellar'])
    partial(t, second.labels_created, [{ key: 'loc', value: 'cellar', href: /labels/ }])
    t.equal(second.labels_created.length, 1)
    t.same(sorted(second.previous.labels), ['app=pay', 'env=prod'])
    t.same(second.updated_fields, ['labels'])
    t.same((await bench.ok('get-workloads', { labels: ['loc=cellar'] })).total, 1, 'the label is known at once')
  })

  await t.test('an empty list clears the labels', async (t) => {
    const answer = await bench.ok('update-workload', { href, labels: [] })
    t.same(answer.workload.labels, [])
    t.same(sorted(answer.previous.labels), ['env=prod', 'loc=cellar'])
    t.same((bench.writes().at(-1)?.body as Json).labels, [])
  })

  await t.test('refuses bad arguments before any write', async (t) => {
    const change = { description: 'x' }
    await refused(t, bench, 'update-workload', change, 'missing_identifier')
    await refused(t, bench, 'update-workload', { href, name: 'store-db', ...change }, 'conflicting_identifiers')
    const nothing = await refused(t, bench, 'update-workload', { href }, 'no_update_fields')
    t.ok(nothing.fields.includes('ip_addresses'))
    await refused(t, bench, 'update-workload', { href: '/orgs/1/labels/1', ...change }, 'invalid_href')
    await refused(t, bench, 'update-workload', { href: href.replace('/orgs/1', '/orgs/2'), ...change }, 'invalid_href')
    await refused(t, bench, 'update-workload', { href: '/orgs/1/workloads/none', ...change }, 'not_found')
    for (const labels of [
      ['app=pay', 'app=payments'],
      ['loc=never', { key: 'loc', value: 'ever' }],
      ['nonsense'],
      [{}],
    ])
      await refused(t, bench, 'update-workload', { href, labels }, 'invalid_argument')
    await refused(
      t,
      bench,
      'update-workload',
      { href, labels: ['loc=never', '/orgs/1/labels/99999'] },
      'label_not_found',
    )
    for (const ip_addresses of [['10.0.0.256'], ['10.0.0.0/8'], ['10.0.0.1', '10.0.0.1'], []])
      await refused(t, bench, 'update-workload', { href, labels: ['loc=never'], ip_addresses }, 'invalid_argument')
    await refused(t, bench, 'update-workload', { href, new_name: 'a\u202Eb' }, 'invalid_argument')
    await refused(t, bench, 'update-workload', { href, hostname: ' a' }, 'invalid_argument')
    await refused(t, bench, 'update-workload', { href, enforcement_mode: 'enforced' }, 'invalid_argument')
    await refused(t, bench, 'update-workload', { href, new_nam: 'x' }, 'invalid_argument')
  })

  await t.test('refuses fields a VEN reports; others of a managed workload can be changed', async (t) => {
    for (const field of [{ hostname: 'x' }, { ip_addresses: ['10.99.0.3'] }]) {
      const args = { href: managed.href, labels: ['loc=never'], ...field }
      const error = await refused(t, bench, 'update-workload', args, 'invalid_argument')
      partial(t, error, {
        argument: Object.keys(field)[0],
        managed: true,
        message: `The workload is managed: its VEN reports ${Object.keys(field)[0]}, so they cannot be set.`,
      })
    }
    const args = { href: managed.href, new_name: 'till-1', enforcement_mode: 'selective', labels: ['app=pay'] }
    const answer = await bench.ok('update-workload', args)
    t.same(answer.updated_fields, ['name', 'enforcement_mode', 'labels'])
    partial(t, answer.previous, { name: null, enforcement_mode: managed.enforcement_mode })
    partial(t, answer.workload, {
      name: 'till-1',
      hostname: managed.hostname,
      managed: true,
      enforcement_mode: 'selective',
    })
    t.notOk('warnings' in answer)
  })

  await t.test('the mode of a host without a VEN: a warning if the PCE accepts it, else its refusal', async (t) => {
    const answer = await bench.ok('update-workload', { href, enforcement_mode: 'full' })
    partial(t, answer, { workload: { enforcement_mode: 'full' }, warnings: [/no VEN/] })
    simulator.faults.add({ kind: 'status', ...PUTS, times: 1, ...NOPE })
    const error = await bench.fails('update-workload', { href, enforcement_mode: 'idle' }, 'pce_error')
    partial(t, error, { http_status: 406, token: 'nope', pce_message: 'Nope' })
  })

  await t.test('a dry run shows the labels to create and the change as they would be sent', async (t) => {
    await bench.ok('update-workload', { href, labels: ['app=pay'] })
    const args = { href, description: 'Exactly this', labels: ['app=pay', 'loc=attic'], dry_run: true }
    bench.writes()
    const answer = await bench.ok('update-workload', args)
    t.same(bench.writes(), [])
    t.equal(answer.dry_run, true)
    t.match(answer.message, /Would change .*: labels\./)
    const { labels } = simulator.state.find(href) as Json
    t.same(answer.requests, [
      { method: 'POST', path: '/orgs/1/labels', body: { key: 'loc', value: 'attic' } },
      { method: 'PUT', path: href, body: { labels: [{ href: labels[0].href }, { href: '{href of loc=attic}' }] } },
    ])
    t.same(sorted(answer.previous.labels), ['app=pay'])
    t.same(sorted(answer.workload.labels), ['app=pay', 'loc=attic'], 'the workload as it would be')
    t.notOk('updated_fields' in answer)

    const { dry_run: _dry, ...real } = args
    await bench.ok('update-workload', real)
    partial(
      t,
      bench.writes().map(({ method, path, body }) => ({ method, path, fields: Object.keys(body as object) })),
      [
        { method: 'POST', path: '/api/v2/orgs/1/labels', fields: ['key', 'value'] },
        { method: 'PUT', path: `/api/v2${href}`, fields: ['labels'] },
      ],
      'the same requests',
    )
    partial(t, await bench.ok('update-workload', { ...real, dry_run: true }), { dry_run: true, requests: [] })
    await refused(t, bench, 'update-workload', { ...args, labels: ['app=a', 'app=b'] }, 'invalid_argument')
  })

  await t.test('creates a label that differs only in case or spaces and warns', async (t) => {
    partial(t, await bench.ok('update-workload', { href, labels: ['app=Pay'] }), {
      warnings: [/differs only in case or spaces/],
    })
  })

  await t.test('deletes the labels it created if the change is refused', async (t) => {
    const before = simulator.state.find(href)?.labels
    simulator.faults.add({ kind: 'status', ...PUTS, times: 1, ...NOPE })
    const error = await bench.fails('update-workload', { href, labels: ['loc=venus', 'env=prod'] }, 'pce_error')
    partial(t, error, { rolled_back: true, token: 'nope', http_status: 406 })
    t.same(error.labels_created, [], 'none is left of those that were made')
    t.notOk('partial' in error)
    t.same((await bench.ok('get-labels', { value: 'venus' })).labels, [])
    t.same(simulator.state.find(href)?.labels, before)

    // The second of two new labels is refused: the first goes too, and the workload is never written.
    bench.writes()
    simulator.faults.add({ kind: 'status', path: '/orgs/1/labels', method: 'POST', times: 1, skip: 1, ...NOPE })
    const two = await bench.fails('update-workload', { href, labels: ['loc=mars', 'role=rover'] }, 'pce_error')
    partial(t, two, { rolled_back: true })
    t.same(two.labels_created, [])
    t.same(
      bench.writes().map(({ method }) => method),
      ['POST', 'POST', 'DELETE'],
    )
    t.same((await bench.ok('get-labels', { value: 'mars' })).labels, [])
  })

  await t.test('says what is left if that fails', async (t) => {
    const hostile = Array.from({ length: 5 }, () => ({ token: 'x', message: `a\u202Eb\n${'y'.repeat(900)}` }))
    simulator.faults.add(
      { kind: 'status', ...PUTS, times: 1, ...NOPE },
      { kind: 'status', path: '/orgs/1/labels', method: 'DELETE', times: 1, status: 403, body: hostile },
    )
    const error = await bench.fails('update-workload', { href, labels: ['loc=pluto', 'role=dwarf'] }, 'pce_error')
    // The newest goes first, and could not be deleted; the other was.
    partial(t, error, {
      partial: true,
      token: 'nope',
      written: [{ href: /labels/ }],
      rollback_error: /^DELETE .*403 .*a⟨U\+202E⟩b\\ny/,
    })
    t.same([error.written.length, error.labels_created.length], [1, 1])
    partial(t, error.labels_created, [{ key: 'role', value: 'dwarf', href: error.written[0].href }])
    t.equal(error.rollback_error.length, 1000, 'clipped, and no escape torn')
    t.notOk('rolled_back' in error)
    partial(t, (await bench.ok('get-labels', { value: 'dwarf' })).labels, [{ href: error.written[0].href }])
    t.same((await bench.ok('get-labels', { value: 'pluto' })).labels, [])
  })

  await t.test('a label already gone counts as rolled back', async (t) => {
    for (const gone of [
      { status: 404 },
      { status: 406, body: [{ token: 'label_already_deleted', message: 'It has already been deleted' }] },
    ]) {
      simulator.faults.add(
        { kind: 'status', ...PUTS, times: 1, ...NOPE },
        { kind: 'status', path: '/orgs/1/labels', method: 'DELETE', times: 1, ...gone },
      )
      const error = await bench.fails('update-workload', { href, labels: [`loc=gone-${gone.status}`] }, 'pce_error')
      partial(t, error, { rolled_back: true, token: 'nope' }, `${gone.status}`)
      t.same(error.labels_created, [])
      t.notOk('partial' in error || 'rollback_error' in error)
    }
  })

  await t.test('does not show internal errors of a rollback', async (t) => {
    const write = async (written: Written) => {
      written.hrefs.push(undefined as never)
      throw new ToolError('invalid_argument', 'Told.')
    }
    await t.rejects(writeWithRollback(pce, { write }), {
      code: 'invalid_argument',
      message: 'Told.',
      details: { partial: true, rollback_error: 'It failed in the server.' },
    })
  })

  await t.test('retries a lost answer, since a change may be repeated', async (t) => {
    simulator.faults.add({ kind: 'commit-then-drop', ...PUTS, times: 1 })
    partial(t, await bench.ok('update-workload', { href, description: 'Twice' }), { updated_fields: ['description'] })
    t.equal(simulator.state.find(href)?.description, 'Twice')
  })

  await t.test('failing to read the result back is a warning', async (t) => {
    simulator.faults.add({ kind: 'status', ...PUTS, method: 'GET', times: 1, skip: 1, status: 404 })
    const answer = await bench.ok('update-workload', { href, description: 'Unseen' })
    partial(t, answer, { updated_fields: ['description'], warnings: [/read back/] })
  })

  await t.test('escapes user text wherever it is shown', async (t) => {
    const hostile = { ...host('evil\u202Ename'), description: `a\u200Bb ${'x'.repeat(2000)}` }
    const evil = await pce.workloads.create(hostile)
    const answer = await bench.ok('update-workload', { href: evil.href, description: 'Fine' })
    t.equal(answer.workload.name, 'evil⟨U+202E⟩name')
    t.equal(answer.previous.description, `a⟨U+200B⟩b ${'x'.repeat(988)}…`)
    t.equal(answer.workload.href, evil.href)
  })

  await t.test('spells out labels that a release gives only by href', async (t) => {
    const labels = [
      { href: '/orgs/1/labels/1', key: 'app', value: 'shop' },
      { href: '/orgs/1/labels/2', key: 'env', value: 'prod' },
    ]
    let stored: Json = { href: '/orgs/1/workloads/w', name: 'w', hostname: 'w', labels: [{ href: labels[0]!.href }] }
    const server = await startServer(t, ({ method, path, body }): Reply => {
      if (method === 'PUT') stored = { ...stored, ...(JSON.parse(body) as object) }
      if (method === 'PUT') return { status: 204 }
      if (path.startsWith('/orgs/1/labels')) return { body: labels, headers: { 'x-total-count': '2' } }
      return { body: stored }
    })
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const first = await scripted.ok('update-workload', { href: stored.href, description: 'x' })
    t.same(first.workload.labels, ['app=shop'], 'those it had')
    const second = await scripted.ok('update-workload', { href: stored.href, labels: ['env=prod'] })
    t.same([second.workload.labels, second.previous.labels], [['env=prod'], ['app=shop']], 'those it got')
  })

  await t.test('a deleted workload is gone although its href still answers', async (t) => {
    await pce.workloads.delete(href)
    partial(t, simulator.state.find(href), { deleted: true })
    await refused(t, bench, 'update-workload', { href, description: 'x' }, 'not_found')
    await refused(t, bench, 'update-workload', { name: 'store-db', description: 'x' }, 'not_found')
  })
})

t.test('delete-workload', async (t) => {
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const managed = (await pce.workloads.getAll()).find((workload) => workload.managed === true)!
  const { href } = await pce.workloads.create(host('batch-1'))
  const others = [await pce.workloads.create(host('batch-10')), await pce.workloads.create(host('old-batch-1'))]

  await t.test('never matches part of a name', async (t) => {
    const error = await refused(t, bench, 'delete-workload', { name: 'batch-' }, 'not_found')
    t.ok(error.near_names.includes('batch-1'))
    await refused(t, bench, 'delete-workload', { name: 'BATCH-1' }, 'not_found')
  })

  await t.test('needs exactly one identifier, of this organisation', async (t) => {
    await refused(t, bench, 'delete-workload', {}, 'missing_identifier')
    await refused(t, bench, 'delete-workload', { href, name: 'batch-1' }, 'conflicting_identifiers')
    await refused(t, bench, 'delete-workload', { href: '/orgs/1/labels/1' }, 'invalid_href')
    await refused(t, bench, 'delete-workload', { href: `${href}/interfaces/eth0` }, 'invalid_href')
    await refused(t, bench, 'delete-workload', { href: href.replace('/orgs/1', '/orgs/2') }, 'invalid_href')
    await refused(t, bench, 'delete-workload', { href: '/orgs/1/workloads/none' }, 'not_found')
    await refused(t, bench, 'delete-workload', { name: '' }, 'invalid_argument')
  })

  await t.test('refuses a managed workload with a hint, even in a dry run', async (t) => {
    for (const args of [{ href: managed.href }, { name: managed.hostname! }, { href: managed.href, dry_run: true }]) {
      const error = await refused(t, bench, 'delete-workload', args, 'invalid_argument')
      partial(t, error, { href: managed.href, managed: true, hint: /[Uu]npair the VEN/ })
    }
  })

  await t.test('shows the request in a dry run, then deletes exactly this one', async (t) => {
    bench.writes()
    const dry = await bench.ok('delete-workload', { name: 'batch-1', dry_run: true })
    partial(t, dry, { dry_run: true, name: 'batch-1', managed: false, requests: [{ method: 'DELETE', path: href }] })
    t.same(bench.writes(), [])
    const answer = await bench.ok('delete-workload', { name: 'batch-1' })
    partial(t, answer, { href, name: 'batch-1', managed: false, message: /Deleted the workload "batch-1"/ })
    partial(t, bench.writes(), [{ method: 'DELETE', path: `/api/v2${href}` }])
    for (const other of others) partial(t, simulator.state.find(other.href), { deleted: false })
  })

  await t.test('is not found by name or href once deleted', async (t) => {
    await refused(t, bench, 'delete-workload', { name: 'batch-1' }, 'not_found')
    await refused(t, bench, 'delete-workload', { href }, 'not_found')
  })

  await t.test('deletes none of several with one name', async (t) => {
    await pce.workloads.create({ ...host('pair'), hostname: 'pair-a' })
    const second = await pce.workloads.create({ ...host('pair'), hostname: 'pair-b' })
    const error = await refused(t, bench, 'delete-workload', { name: 'pair' }, 'ambiguous_name')
    t.same(error.candidates.map(({ hostname }: Json) => hostname).sort(), ['pair-a', 'pair-b'])
    await bench.ok('delete-workload', { href: ` ${second.href} ` })
    partial(t, await bench.ok('get-workloads', { name: 'pair' }), { total: 1 })
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({ kind: 'status', path: /\/workloads\/[^/]+$/, method: 'DELETE', times: 1, ...NOPE })
    const error = await bench.fails('delete-workload', { name: 'batch-10' }, 'pce_error')
    partial(t, error, { http_status: 406, token: 'nope', pce_message: 'Nope' })
  })

  await t.test('a deletion whose answer was lost counts as done on retry', async (t) => {
    const lost = await pce.workloads.create(host('lost'))
    simulator.faults.add({ kind: 'commit-then-drop', path: lost.href, method: 'DELETE', times: 1 })
    partial(t, await bench.ok('delete-workload', { name: 'lost' }), { href: lost.href, message: /Deleted/ })
    partial(t, simulator.state.find(lost.href), { deleted: true })
  })

  await t.test('escapes a hostile name in the answer', async (t) => {
    const evil = await pce.workloads.create(host('bad\u202Ename'))
    const answer = await bench.ok('delete-workload', { href: evil.href })
    partial(t, answer, { href: evil.href, name: 'bad⟨U+202E⟩name' })
  })
})

t.test('get-workload-enforcement-status', async (t) => {
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const NAME = 'get-workload-enforcement-status'
  const label = (workload: Json, key: string) => workload.labels.find((one: Json) => one.key === key)?.value ?? null
  const tally = (workloads: Json[]) => {
    const counts: Record<string, number> = {}
    for (const { enforcement_mode: mode } of workloads) counts[mode] = (counts[mode] ?? 0) + 1
    return counts
  }
  /** Hosts and Kubernetes workloads, which are enforced like managed hosts. */
  const readAll = async (): Promise<Json[]> => {
    const pods: Json[] = await pce.kubernetesWorkloads.getAll()
    return [...(await pce.workloads.getAll()), ...pods.map((pod) => ({ ...pod, managed: true }))]
  }
  const sum = (counts: Json) => Object.values<number>(counts).reduce((total, count) => total + count, 0)

  await t.test('counts the whole estate, and managed workloads separately', async (t) => {
    const everything = await readAll()
    const managed = everything.filter((workload) => workload.managed)
    const answer = await bench.ok(NAME, { max_results: 1_000 })
    t.equal(answer.total_workloads, everything.length)
    t.same(answer.global_enforcement_modes, tally(everything))
    t.same(answer.managed_only, { total: managed.length, enforcement_modes: tally(managed) })
    t.ok(managed.length < everything.length, 'there are unmanaged ones')
    const offline = managed.filter((workload) => workload.online === false).length
    t.ok(offline > 0)
    t.equal(answer.offline, offline)
    t.equal(
      sum(Object.fromEntries(answer.app_groups.map((group: Json, at: number) => [at, group.workload_count]))),
      everything.length,
    )
    partial(t, answer, { truncated: false, app_groups_total: answer.app_groups.length })
  })

  await t.test('groups by app and env, null without the label, sorted by app|env; lists mixed ones', async (t) => {
    const everything = await readAll()
    const answer = await bench.ok(NAME, { max_results: 1_000 })
    for (const group of answer.app_groups) {
      const members = everything.filter(
        (workload) => label(workload, 'app') === group.app && label(workload, 'env') === group.env,
      )
      const managed = members.filter((workload) => workload.managed)
      t.same(group, {
        app: group.app,
        env: group.env,
        workload_count: members.length,
        enforcement_modes: tally(members),
        ...(managed.length < members.length && {
          unmanaged_count: members.length - managed.length,
          managed_modes: tally(managed),
        }),
        is_mixed: Object.keys(tally(managed)).length > 1,
      })
    }
    const keys = answer.app_groups.map(({ app, env }: Json) => `${app ?? 'unlabeled'}|${env ?? 'unlabeled'}`)
    t.same(keys, [...keys].sort())
    t.ok(
      answer.app_groups.some(({ app }: Json) => app === null),
      'a workload without app is counted',
    )
    const mixed = answer.app_groups.filter((group: Json) => group.is_mixed)
    t.ok(mixed.length > 0)
    t.same(
      answer.mixed_enforcement_apps,
      mixed.map(({ app, env, enforcement_modes: modes, managed_modes }: Json) => ({
        app,
        env,
        modes: managed_modes ?? modes,
      })),
    )
    t.equal(answer.mixed_count, mixed.length)
  })

  await t.test('a host without a VEN has no mode that could be mixed', async (t) => {
    const hosts = {
      a1: { ip: '10.0.0.1', labels: 'app=a env=prod', mode: 'full' },
      a2: { ip: '10.0.0.2', labels: 'app=a env=prod', managed: false },
      b1: { ip: '10.0.0.3', labels: 'app=b env=prod', mode: 'full' },
      b2: { ip: '10.0.0.4', labels: 'app=b env=prod', mode: 'selective' },
      b3: { ip: '10.0.0.5', labels: 'app=b env=prod', managed: false },
    } as const
    const answer = await (await startBench(t, { estate: handMade({ hosts }) })).ok(NAME)
    t.same(answer.mixed_enforcement_apps, [{ app: 'b', env: 'prod', modes: { full: 1, selective: 1 } }])
    t.equal(answer.mixed_count, 1)
    t.same(answer.app_groups[0], {
      app: 'a',
      env: 'prod',
      workload_count: 2,
      unmanaged_count: 1,
      enforcement_modes: { full: 1, visibility_only: 1 },
      managed_modes: { full: 1 },
      is_mixed: false,
    })
  })

  await t.test('app and env are ANDed and exact, in every form', async (t) => {
    const everything = await readAll()
    const expected = everything.filter((one) => label(one, 'app') === 'payments' && label(one, 'env') === 'prod').length
    const found = (await bench.ok('get-labels', { key: 'app', value: 'payments' })).labels
    const { href } = found.find((one: Json) => one.value === 'payments')
    for (const app_name of ['payments', 'app=payments', ' payments ', href]) {
      const answer = await bench.ok(NAME, { app_name, env_name: 'env=prod' })
      t.equal(answer.total_workloads, expected, app_name)
      partial(t, answer.app_groups, [{ app: 'payments', env: 'prod', workload_count: expected }])
      t.equal(answer.app_groups.length, 1)
    }
    const query = simulator.requests.filter(({ path }) => path.endsWith('/workloads')).at(-1)?.query
    const [group, ...more] = JSON.parse(query?.labels ?? 'null') as string[][]
    t.same([group?.length, group?.includes(href), more], [2, true, []], 'one group of both')
    const { app_groups: groups } = await bench.ok(NAME, { app_name: 'pay' })
    t.same(new Set(groups.map(({ app }: Json) => app)), new Set(['pay']), 'not payments, of which it is a part')
  })

  await t.test('an unknown application is not_found, never the whole estate', async (t) => {
    simulator.clearRequests()
    const near = await bench.fails(NAME, { app_name: 'payment' }, 'not_found')
    partial(t, near, {
      argument: 'app_name',
      key: 'app',
      near_names: ['payments', 'pay'],
    })
    partial(t, await bench.fails(NAME, { env_name: 'env=production' }, 'not_found'), {
      argument: 'env_name',
      near_names: ['prod'],
    })
    await bench.fails(NAME, { app_name: 'Payments' }, 'not_found')
    await bench.fails(NAME, { app_name: 'env=prod' }, 'not_found')
    await bench.fails(NAME, { app_name: '/orgs/1/labels/99999' }, 'not_found')
    await bench.fails(NAME, { app_name: '  ' }, 'not_found')
    await bench.fails(NAME, { app_name: '' }, 'invalid_argument')
    await bench.fails(NAME, { application: 'payments' }, 'invalid_argument')
    t.notOk(
      simulator.requests.some(({ path }) => path.endsWith('/workloads')),
      'no workload was asked for',
    )
  })

  await t.test('a label may equal the placeholder for none, or contain the separator', async (t) => {
    const small = await startBench(t, { workloads: 20, flows: 10 })
    const before = await small.ok(NAME)
    const nameless = before.app_groups.find(({ app, env }: Json) => app === null && env === null)
    const of = async (...labels: string[]) =>
      small.ok('create-workload', { name: labels.join(), ip_addresses: ['10.99.1.1'], labels })
    await of('app=unlabeled', 'env=unlabeled')
    await of('app=a|b', 'env=c')
    await of('app=a', 'env=b|c')
    const { app_groups: groups } = await small.ok(NAME)
    const count = (app: string | null, env: string | null) =>
      groups.find((group: Json) => group.app === app && group.env === env)?.workload_count
    t.equal(count(null, null), nameless?.workload_count)
    t.same([count('unlabeled', 'unlabeled'), count('a|b', 'c'), count('a', 'b|c')], [1, 1, 1])
  })

  await t.test('an answer that would be too large says what is missing', async (t) => {
    const whole = await bench.ok(NAME)
    const tight = await startBench(t, { budget: 2500 })
    const answer = await tight.ok(NAME)
    t.ok(JSON.stringify(answer).length <= 2500)
    t.equal(answer.truncated, true)
    t.ok(answer.app_groups.length > 0 && answer.app_groups.length < answer.app_groups_total)
    t.same(answer.mixed_enforcement_apps, whole.mixed_enforcement_apps, 'what to act on comes first')
    t.equal(answer.total_workloads, whole.total_workloads, 'totals cover everything')
  })

  await t.test('counts more workloads than fit on a page', async (t) => {
    const large = await startBench(t, { workloads: 620, flows: 0 })
    const { total_workloads: total, kubernetes_workloads: pods } = await large.ok(NAME)
    t.equal(total - pods, 620)
    const workloads = Array.from({ length: 10_200 }, (_, n) => ({
      href: `/orgs/1/workloads/${n}`,
      enforcement_mode: 'full',
    }))
    const server = await startServer(t, ({ path }): Reply => {
      if (path.includes('/kubernetes_workloads')) return { body: [] }
      const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 500)
      return { body: workloads.slice(0, asked), headers: { 'x-total-count': '10200' } }
    })
    const huge = await benchOf(t, simulator, `http://127.0.0.1:${server.port}`).ok(NAME)
    partial(t, huge, { total_workloads: 10_200, global_enforcement_modes: { full: 10_200 } })
  })

  await t.test('handles labels given only by href, and a missing mode', async (t) => {
    const labels = [
      { href: '/orgs/1/labels/1', key: 'app', value: 'shop\u202E' },
      { href: '/orgs/1/labels/2', key: 'env', value: 'prod' },
    ]
    const members = [
      {
        href: '/orgs/1/workloads/a',
        labels: [{ href: '/orgs/1/labels/1' }, { href: '/orgs/1/labels/2' }],
        managed: true,
      },
      { href: '/orgs/1/workloads/b', labels: null, agent: { config: {} }, enforcement_mode: 'full' },
      {
        href: '/orgs/1/workloads/c',
        labels: [{ href: '/orgs/1/labels/2' }],
        ven: { href: '/orgs/1/vens/c' },
        online: false,
      },
    ]
    const server = await startServer(t, ({ path }): Reply => {
      const body = path.startsWith('/orgs/1/labels') ? labels : path.startsWith('/orgs/1/workloads') ? members : []
      return { body, headers: { 'x-total-count': String(body.length) } }
    })
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const answer = await scripted.ok(NAME)
    partial(t, answer, {
      global_enforcement_modes: { unknown: 2, full: 1 },
      managed_only: { total: 2, enforcement_modes: { unknown: 2 } },
      offline: 1,
    })
    t.same(
      answer.app_groups.map(({ app, env }: Json) => [app, env]),
      [
        ['shop⟨U+202E⟩', 'prod'],
        [null, 'prod'],
        [null, null],
      ],
    )
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({
      kind: 'status',
      path: '/orgs/1/workloads',
      times: 1,
      status: 403,
      body: [{ token: 'no', message: 'No' }],
    })
    partial(t, await bench.fails(NAME, {}, 'pce_error'), { http_status: 403, token: 'no', hint: /permission/ })
  })
})
