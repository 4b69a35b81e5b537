/** Connection, changelog, labels and workloads: what the tools answer, refuse and send. */
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { fetchEvery } from '../../domain/inventory/fetch-every.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { makePki } from '../pce-client/contract/transport/make-pki.js'
import { benchOf, startBench, type Bench, type Json } from './harness.js'

/** Every object of a list tool, by following its cursor; fails when a page is empty or the end never comes. */
async function follow(
  bench: Bench,
  tool: string,
  args: object,
  list: string,
): Promise<{ items: Json[]; pages: Json[] }> {
  const pages: Json[] = []
  let cursor: string | undefined
  do {
    const page = await bench.ok(tool, cursor === undefined ? args : { ...args, cursor })
    pages.push(page)
    if (pages.length > 200) throw new Error('no end')
    cursor = page.next_cursor
  } while (cursor !== undefined)
  return { items: pages.flatMap((page) => page[list]), pages }
}

t.test('check-pce-connection', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench

  await t.test('checks host, credentials and organisation, and measures latency', async (t) => {
    const answer = await bench.ok('check-pce-connection')
    const url = new URL(simulator.url)
    partial(t, answer, {
      connected: true,
      pce_host: url.hostname,
      pce_port: Number(url.port),
      org_id: '1',
      version: /^\d+\./,
    })
    t.type(answer.latency_ms, 'number')
    t.same(
      simulator.requests.map(({ path }) => path),
      ['/api/v2/health', '/api/v2/orgs/1/settings/workloads', '/api/v2/product_version'],
    )
  })

  await t.test('judges a PCE without /health by its organisation', async () => {
    simulator.faults.add({ kind: 'status', path: '/health', times: 1, status: 404 })
    await bench.ok('check-pce-connection')
  })

  await t.test('refused credentials and a foreign organisation give errors with the cause', async (t) => {
    for (const status of [401, 403]) {
      simulator.faults.add({
        kind: 'status',
        path: '/orgs/1/settings/workloads',
        times: 1,
        status,
        body: [{ token: 'no_entry', message: 'No.' }],
      })
      const error = await bench.fails('check-pce-connection', {}, 'pce_error')
      partial(t, error, {
        connected: false,
        http_status: status,
        token: 'no_entry',
        pce_message: 'No.',
        org_id: '1',
        hint: /key/,
      })
    }
  })

  await t.test('quotes a PCE that answers only errors', async (t) => {
    simulator.clearRequests()
    simulator.faults.add({ kind: 'retry-after', path: '/health', times: 100, retryAfter: 60 })
    partial(t, await bench.fails('check-pce-connection', {}, 'pce_error'), {
      connected: false,
      http_status: 429,
      retry_after: 60,
      hint: /rate/,
    })
    t.equal(simulator.requests.length, 1, 'a wait that would outlast the check is not begun')
    simulator.faults.clear()
  })

  await t.test('an unreachable PCE is reported with the reason', async (t) => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const dead = benchOf(t, simulator, `http://127.0.0.1:${port}`)
    partial(t, await dead.fails('check-pce-connection', {}, 'pce_unreachable'), {
      connected: false,
      pce_port: port,
      message: /refused/,
      hint: /^Nothing was changed\. No program listens there: /,
    })
  })

  await t.test('a certificate that nobody trusts names the variable for a private CA', async (t) => {
    const pki = makePki(t)
    const simulated = await createPceSimulator({
      workloads: 20,
      flows: 1,
      tls: { cert: pki.read('server.pem'), key: pki.read('server.key') },
    })
    t.teardown(() => simulated.close())
    const { port } = new URL(await simulated.listen())
    const untrusted = benchOf(t, simulated, `https://localhost:${port}`)
    partial(t, await untrusted.fails('check-pce-connection', {}, 'pce_unreachable'), {
      message: /UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
      hint: /PCE_CA_FILE has to name the PEM file of that CA/,
    })
  })
})

t.test('get-server-changelog', async (t) => {
  const CHANGELOG = `# Changelog

Introduction.

## [Unreleased]

### Added

- Something new that goes on
  over a second line.
- Another.

## [0.10.0] - 2026-05-02

### Unlearn: labels

- The old habit.

### Fixed

- A fault.

## [0.9.1] - 2026-04-01

### Unlearned

- An older habit.
`
  const bench = await startBench(t, { changelog: async () => CHANGELOG })

  await t.test('returns every release, newest first, with wrapped items joined', async (t) => {
    const answer = await bench.ok('get-server-changelog')
    t.same(
      answer.releases.map((release: Json) => [release.version, release.date]),
      [
        ['Unreleased', null],
        ['0.10.0', '2026-05-02'],
        ['0.9.1', '2026-04-01'],
      ],
    )
    t.same(answer.releases[0].sections, { Added: ['Something new that goes on over a second line.', 'Another.'] })
    partial(t, answer, { server_version: '0.1.0', latest_release: '0.10.0', queried_since: null })
    t.same(answer.unlearn, [
      { version: '0.10.0', item: 'The old habit.' },
      { version: '0.9.1', item: 'An older habit.' },
    ])
  })

  await t.test('returns only strictly newer releases, compared by number', async (t) => {
    for (const since of ['0.9.1', 'v0.9.1', '0.9.2', 'v0.9.9']) {
      const { releases, unlearn } = await bench.ok('get-server-changelog', { since })
      t.same(
        releases.map((release: Json) => release.version),
        ['Unreleased', '0.10.0'],
        since,
      )
      t.same(unlearn.length, 1)
    }
    t.same(
      (await bench.ok('get-server-changelog', { since: '0.10' })).releases.map((release: Json) => release.version),
      ['Unreleased'],
    )
    t.same(
      (await bench.ok('get-server-changelog', { since: '1' })).releases.length,
      1,
      'what is not released yet is newer than all',
    )
  })

  await t.test('an invalid version returns everything and says so', async (t) => {
    const answer = await bench.ok('get-server-changelog', { since: 'yesterday' })
    t.equal(answer.releases.length, 3)
    partial(t, answer, { queried_since: 'yesterday', note: /yesterday/ })
    for (const since of ['2026-01-01', 'release 9', '1.2.3.4']) {
      t.equal((await bench.ok('get-server-changelog', { since })).releases.length, 3, since)
    }
  })

  await t.test('unlearn_only leaves the releases out', async (t) => {
    const answer = await bench.ok('get-server-changelog', { unlearn_only: true })
    t.notOk('releases' in answer)
    t.equal(answer.unlearn.length, 2)
  })

  await t.test('a missing changelog is an answer, an unreadable one an error', async (t) => {
    const none = await startBench(t, { workloads: 20, flows: 10 })
    partial(t, await none.ok('get-server-changelog'), { server_version: '0.1.0', releases: [], note: /no changelog/ })
    const broken = await startBench(t, {
      workloads: 20,
      flows: 10,
      changelog: () => Promise.reject(new Error('EIO /srv/x')),
    })
    t.notMatch(JSON.stringify(await broken.fails('get-server-changelog', {}, 'changelog_unavailable')), /srv/)
  })
})

t.test('get-labels', async (t) => {
  const bench = await startBench(t)
  const all = await bench.pce.labels.getAll()

  await t.test('key matches exactly although the PCE matches substrings', async (t) => {
    bench.simulator.clearRequests()
    const { labels, total_count: count } = await bench.ok('get-labels', { key: 'en' })
    t.same(labels, [], 'no label has the key "en"')
    t.equal(count, 0)
    const apps = await bench.ok('get-labels', { key: 'app', value: 'pay' })
    t.same(apps.labels.map((label: Json) => label.value).sort(), ['pay', 'payments'], 'a value is a part')
    partial(t, apps, { total_count: 2, truncated: false })
    t.notOk('next_cursor' in apps)
  })

  await t.test('filters by key itself where the PCE returns labels with similar keys', async (t) => {
    const labels = ['env', 'environment', 'en', 'env'].map((key, at) => ({
      href: `/orgs/1/labels/${at}`,
      key,
      value: `v${at}`,
    }))
    const server = await startServer(t, () => ({ body: labels, headers: { 'x-total-count': '4' } }))
    const loose = benchOf(t, bench.simulator, `http://127.0.0.1:${server.port}`)
    const answer = await loose.ok('get-labels', { key: 'env' })
    t.same([answer.labels.map(({ value }: Json) => value), answer.total_count], [['v0', 'v3'], 2])
  })

  await t.test('a small max_results still finds exact matches behind inexact ones', async (t) => {
    // `ap` would match the custom key first if the PCE cut before the exact comparison.
    await bench.pce.labels.create({ key: 'app', value: 'zz-last' })
    const { labels } = await bench.ok('get-labels', { key: 'app', value: 'zz-last', max_results: 1 })
    t.same(
      labels.map((label: Json) => label.value),
      ['zz-last'],
    )
  })

  await t.test('following the cursor returns every label once, whatever limits a page', async (t) => {
    const current = await bench.pce.labels.getAll()
    const expected = current.map(({ href }) => href)
    for (const args of [{}, { max_results: 7 }, { max_results: 1000 }]) {
      const { items, pages } = await follow(bench, 'get-labels', args, 'labels')
      t.same(
        items.map((label: Json) => label.href),
        expected,
        JSON.stringify(args),
      )
      for (const page of pages) partial(t, page, { total_count: expected.length, pce_total: expected.length })
      t.same(
        pages.map((page) => page.truncated),
        pages.map((_, index) => index < pages.length - 1),
      )
      const { max_results: most = Infinity } = args
      t.ok(pages.every((page) => page.labels.length <= most))
    }
    const small = await startBench(t, { budget: 3000 })
    const { items, pages } = await follow(small, 'get-labels', {}, 'labels')
    t.same(
      items.map((label: Json) => label.href),
      all.map(({ href }) => href),
      'cut by bytes',
    )
    t.ok(pages.length > 3)
    for (const page of pages)
      t.ok(Buffer.byteLength(JSON.stringify(page)) <= 3000, `${JSON.stringify(page).length} bytes`)
    const exact = await follow(small, 'get-labels', { key: 'app', max_results: 9 }, 'labels')
    t.same(
      exact.items.map((label: Json) => label.href),
      all.filter(({ key }) => key === 'app').map(({ href }) => href),
      'with our own filter',
    )
  })

  await t.test('a label deleted between pages hides no other', async (t) => {
    const made = []
    for (const value of ['k1', 'k2', 'k3', 'k4'])
      made.push(await bench.pce.labels.create({ key: 'loc', value: `cursor-${value}` }))
    const first = await bench.ok('get-labels', { value: 'cursor-', max_results: 2 })
    await bench.pce.labels.delete(made[0]!.href)
    const second = await bench.ok('get-labels', { value: 'cursor-', max_results: 2, cursor: first.next_cursor })
    t.same(
      [...first.labels, ...second.labels].map((label: Json) => label.value),
      ['cursor-k1', 'cursor-k2', 'cursor-k3', 'cursor-k4'],
    )
  })

  await t.test('nor does deleting the one the cursor points at', async (t) => {
    const first = await bench.ok('get-labels', { value: 'cursor-', max_results: 2 })
    await bench.pce.labels.delete(first.labels[1].href)
    const second = await bench.ok('get-labels', { value: 'cursor-', max_results: 2, cursor: first.next_cursor })
    t.same(
      [...first.labels, ...second.labels].map((label: Json) => label.value),
      ['cursor-k2', 'cursor-k3', 'cursor-k4'],
    )
  })

  await t.test('a foreign, edited or mismatched cursor is invalid_argument without a PCE request', async (t) => {
    const { next_cursor: cursor } = await bench.ok('get-labels', { key: 'app', max_results: 2 })
    const [offset, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const forge = (body: unknown) => Buffer.from(JSON.stringify(body)).toString('base64url')
    bench.simulator.clearRequests()
    for (const bad of [
      '',
      'x',
      '!!',
      forge({}),
      forge([-1, ...rest]),
      forge([1e12, ...rest]),
      forge([offset + 1, ...rest]),
    ]) {
      await bench.fails('get-labels', { key: 'app', max_results: 2, cursor: bad }, 'invalid_argument')
    }
    await bench.fails('get-labels', { key: 'env', max_results: 2, cursor }, 'invalid_argument')
    await bench.fails('get-workloads', { cursor }, 'invalid_argument')
    t.equal(bench.simulator.requests.length, 0)
    await bench.ok('get-labels', { key: 'app', max_results: 5, cursor })
  })

  await t.test('includes usage and deleted labels on request', async (t) => {
    const label = await bench.pce.labels.create({ key: 'loc', value: 'gone' })
    await bench.pce.labels.delete(label.href)
    t.same((await bench.ok('get-labels', { value: 'gone' })).labels, [])
    partial(t, (await bench.ok('get-labels', { value: 'gone', include_deleted: true })).labels, [{ deleted: true }])
    partial(t, (await bench.ok('get-labels', { key: 'app', value: 'payments', usage: true })).labels, [
      { usage: { workload: true } },
    ])
  })

  await t.test('bad arguments are refused', async () => {
    for (const args of [{ max_results: 0 }, { max_results: 10_001 }, { key: '' }, { keys: 'app' }, { usage: 'yes' }]) {
      await bench.fails('get-labels', args, 'invalid_argument')
    }
  })
})

t.test('reads everything from a PCE that always cuts at 500', async (t) => {
  const objects = Array.from({ length: 1200 }, (_, index) => ({
    href: `/orgs/1/labels/${index}`,
    key: 'app',
    value: `a${index}`,
  }))
  const server = await startServer(t, ({ path, headers }): Reply => {
    if (path.startsWith('/orgs/1/jobs')) return { body: { status: 'done', result: { href: '/orgs/1/datafiles/x' } } }
    if (path.startsWith('/orgs/1/datafiles')) return { body: objects }
    if (headers.prefer === 'respond-async')
      return { status: 202, headers: { location: '/orgs/1/jobs/x', 'retry-after': '0' } }
    const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 500)
    return { body: objects.slice(0, Math.min(asked, 500)), headers: { 'x-total-count': '1200' } }
  })
  const pce = createPceClient({
    url: 'http://127.0.0.1',
    port: server.port,
    timers: { now: Date.now, random: () => 0.5, sleep: async () => {} },
  })
  const page = await fetchEvery({ api: pce.labels, params: {}, signal: new AbortController().signal })
  t.equal(page.items.length, 1200)
})

t.test('loses nothing from a PCE that starts no jobs and returns less unless told how many', async (t) => {
  const objects = Array.from({ length: 12_000 }, (_, index) => ({ href: `/orgs/1/events/${index}` }))
  const server = await startServer(t, ({ path }): Reply => {
    const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 100)
    return { body: objects.slice(0, Math.min(asked, 500)), headers: { 'x-total-count': '12000' } }
  })
  const pce = createPceClient({ url: 'http://127.0.0.1', port: server.port })
  const page = await fetchEvery({ api: pce.events, params: {}, signal: new AbortController().signal })
  t.same([page.items.length, page.totalCount], [500, 12_000])
})

t.test('a list that the PCE cuts and never gives whole is truncated, to its last page', async (t) => {
  const { simulator } = await startBench(t, { workloads: 20, flows: 0 })
  const objects = Array.from({ length: 1200 }, (_, at) => ({
    href: `/orgs/1/${at}`,
    name: `w${at}`,
    ...{ key: 'app', value: `a${at}`, enforcement_mode: 'full', managed: true, labels: [] },
  }))
  const server = await startServer(t, ({ path }): Reply => {
    const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 500)
    return { body: objects.slice(0, Math.min(asked, 500)), headers: { 'x-total-count': '1200' } }
  })
  const bench = benchOf(t, simulator, `http://127.0.0.1:${server.port}`, { budget: 200_000 })
  const { items, pages } = await follow(bench, 'get-labels', {}, 'labels')
  t.equal(items.length, 500)
  partial(t, pages.at(-1), { total_count: 1200, pce_total: 1200, truncated: true, next_cursor: undefined })
  const filtered = await bench.ok('get-labels', { value: 'a7', exact: true })
  partial(t, filtered, { total_count: 1, pce_total: 1200, truncated: true, next_cursor: undefined })
  partial(t, await bench.ok('get-workload-enforcement-status'), { total_workloads: 500, truncated: true })
})

t.test('create-label', async (t) => {
  const bench = await startBench(t)

  await t.test('creates exactly what was requested, and resolvers know it at once', async (t) => {
    await bench.ok('get-workloads', { labels: 'app=payments' })
    const answer = await bench.ok('create-label', { key: 'app', value: 'brand-new' })
    partial(t, answer, {
      message: /brand-new/,
      label: { href: /^\/orgs\/1\/labels\/\d+$/, key: 'app', value: 'brand-new' },
    })
    partial(t, bench.simulator.state.find(answer.label.href), { key: 'app', value: 'brand-new' })
    partial(t, await bench.ok('get-workloads', { labels: 'app=brand-new' }), { total: 0 })
  })

  await t.test('refuses an existing label with its href and sends nothing', async (t) => {
    bench.writes()
    const error = await bench.fails('create-label', { key: 'app', value: 'payments' }, 'already_exists')
    partial(t, error, { href: /labels/, existing_label: { key: 'app', value: 'payments' } })
    t.same(bench.writes(), [])
  })

  await t.test('refuses a label that somebody else created a moment ago, in a dry run too', async () => {
    await bench.ok('get-workloads', { labels: 'app=payments' })
    await bench.pce.labels.create({ key: 'app', value: 'just-made' })
    await bench.fails('create-label', { key: 'app', value: 'just-made', dry_run: true }, 'already_exists')
  })

  await t.test('part of an existing value is a different label', async () => {
    await bench.ok('create-label', { key: 'app', value: 'paymen' })
  })

  await t.test('creates a label that differs only in case or spaces and warns', async (t) => {
    partial(t, await bench.ok('create-label', { key: 'app', value: 'PAYMENTS' }), { warnings: [/app=payments/] })
  })

  await t.test('a dry run shows the request and sends nothing', async (t) => {
    bench.writes()
    t.same(await bench.ok('create-label', { key: 'app', value: 'dry', dry_run: true }), {
      dry_run: true,
      message: 'Would create the label "app=dry".',
      requests: [{ method: 'POST', path: '/orgs/1/labels', body: { key: 'app', value: 'dry' } }],
    })
    t.same(bench.writes(), [])
  })

  await t.test('refuses names that no reference could resolve', async (t) => {
    bench.writes()
    for (const args of [
      { key: 'a=b', value: 'x' },
      { key: 'app', value: ' x' },
      { key: ' app', value: 'x' },
      { key: 'app', value: '' },
      { key: 'app' },
      { key: 'app', value: 'pay\u200Bments' },
      { key: 'app', value: 'pay\tments' },
    ]) {
      await bench.fails('create-label', args, 'invalid_argument')
    }
    const hidden = { name: 'pay\u200Bments', ip_addresses: ['10.77.0.99'] }
    const spaced = await bench.fails('create-label', { key: 'a=b', value: ' x' }, 'invalid_argument')
    partial(t, spaced.problems, [
      { path: '/key', message: /"="/ },
      { path: '/value', message: /white space/ },
    ])
    await bench.fails('create-workload', hidden, 'invalid_argument')
    await bench.fails('create-workload', { ...hidden, name: 'x', labels: ['app=pay\u200Bments'] }, 'invalid_argument')
    await bench.fails('create-ruleset', { name: hidden.name, scopes: [['app=pay']] }, 'invalid_argument')
    t.same(bench.writes(), [])
  })

  await t.test('leaves refusing an unknown key to the PCE and quotes it', async (t) => {
    partial(t, await bench.fails('create-label', { key: 'no-such-dimension', value: 'x' }, 'pce_error'), {
      http_status: 406,
      token: /./,
    })
  })

  await t.test('a concurrent creation is already_exists with the href', async (t) => {
    // Our POST is held back until the other's has gone through.
    bench.simulator.faults.add({ kind: 'slow', path: '/orgs/1/labels', method: 'POST', times: 1, delayMs: 2000 })
    bench.writes()
    const refused = bench.fails('create-label', { key: 'app', value: 'raced' }, 'already_exists')
    while (bench.simulator.requests.at(-1)?.method !== 'POST') await new Promise(setImmediate)
    const { href } = await bench.pce.labels.create({ key: 'app', value: 'raced' })
    partial(t, await refused, { href, existing_label: { href, value: 'raced' } })
    t.equal(bench.writes().length, 2, 'ours was sent')
  })

  await t.test('waits out a 429; a lost answer is outcome_unknown and is not retried', async (t) => {
    bench.simulator.faults.add({ kind: 'retry-after', path: '/orgs/1/labels', method: 'POST', times: 2, retryAfter: 1 })
    await bench.ok('create-label', { key: 'app', value: 'patient' })
    bench.writes()
    bench.simulator.faults.add({ kind: 'commit-then-drop', path: '/orgs/1/labels', method: 'POST', times: 1 })
    await bench.fails('create-label', { key: 'app', value: 'lost' }, 'outcome_unknown')
    t.equal(bench.writes().length, 1)
    await bench.fails('create-label', { key: 'app', value: 'lost' }, 'already_exists')
  })
})

t.test('get-workloads', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench
  const everything = await bench.pce.workloads.getAll()
  const column = (answer: Json, name: string) => answer.data.map((row: Json[]) => row[answer.columns.indexOf(name)])

  await t.test('compact rows have the documented columns, then one per label key', async (t) => {
    const answer = await bench.ok('get-workloads', { labels: ['app=payments', 'env=prod'] })
    t.same(answer.columns.slice(0, 9), [
      'href',
      'name',
      'hostname',
      'ip_addresses',
      'os_type',
      'online',
      'managed',
      'enforcement_mode',
      'visibility_level',
    ])
    t.same(
      [answer.columns.slice(9), answer.in_every_row],
      [['loc', 'role'], { app: 'payments', env: 'prod' }],
      'not pay',
    )
    t.ok(answer.data.length > 0)
    partial(t, answer, {
      total: answer.data.length,
      returned: answer.data.length,
      truncated: false,
      pce_truncated: false,
    })
    t.notOk('total_count' in answer, 'total is the same')
  })

  await t.test('accepts labels in every form and sends one AND group of hrefs', async (t) => {
    const app = everything.flatMap((workload) => workload.labels ?? []).find(({ value }) => value === 'payments')!
    for (const labels of [
      'app=payments',
      app.href,
      ' app = payments ',
      ['app=payments'],
      `["app=payments"]`,
      [{ key: 'app', value: 'payments' }],
      [{ href: app.href }],
      `[{"key":"app","value":"payments"}]`,
    ]) {
      simulator.clearRequests()
      await bench.ok('get-workloads', { labels })
      const { query } = simulator.requests.find(({ path }) => path.endsWith('/workloads'))!
      t.equal(query.labels, JSON.stringify([[app.href]]), JSON.stringify(labels))
    }
    simulator.clearRequests()
    await bench.ok('get-workloads', { labels: ['app=payments', 'env=prod'] })
    t.equal(JSON.parse(simulator.requests.find(({ path }) => path.endsWith('/workloads'))!.query.labels!)[0].length, 2)
  })

  await t.test('a value may contain an equals sign', async (t) => {
    const { href } = await bench.pce.labels.create({ key: 'app', value: 'a=b' })
    simulator.clearRequests()
    await bench.ok('get-workloads', { labels: 'app=a=b' })
    t.equal(simulator.requests.find(({ path }) => path.endsWith('/workloads'))!.query.labels, JSON.stringify([[href]]))
  })

  await t.test('refuses an inexact label before asking the PCE for workloads', async (t) => {
    simulator.clearRequests()
    const error = await bench.fails(
      'get-workloads',
      { labels: ['app=payment', 'App=payments', 'payments', 'env=prod', { key: 'env', values: 'prod' }] },
      'unresolved_label_filter',
    )
    t.same(error.unresolved, ['app=payment', 'App=payments', 'payments', '{"key":"env","values":"prod"}'])
    t.equal(error.valid_values['app=payment'][0], 'payments', 'the likest first')
    t.ok(error.valid_values['app=payment'].length <= 10, 'not everything, where one is near')
    t.match(error.valid_values['App=payments'], /Keys: "app"/)
    t.match(error.valid_values.payments, /app=payments/)
    t.notOk(simulator.requests.some(({ path }) => path.endsWith('/workloads')))
  })

  await t.test('refuses two values of one key instead of returning nothing', async (t) => {
    partial(t, await bench.fails('get-workloads', { labels: ['app=payments', 'app=ordering'] }, 'invalid_argument'), {
      message: /ANDed/,
    })
    for (const labels of ['[1]', '[["/orgs/1/labels/1"]]', '[oops'])
      await bench.fails('get-workloads', { labels }, 'invalid_argument')
  })

  await t.test('takes a label group for any of its labels, with the groups inside it', async (t) => {
    const labels: Json[] = await bench.pce.labels.getAll()
    const hrefOf = (key: string, value: string) =>
      labels.find((label) => label.key === key && label.value === value)!.href as string
    const apps = ['payments', 'crm'].map((value) => ({ href: hrefOf('app', value) }))
    const inner = await bench.pce.labelGroups.create({ name: 'inner', key: 'app', labels: [apps[1]!] })
    const outer = await bench.pce.labelGroups.create({
      name: 'outer',
      key: 'app',
      labels: [apps[0]!],
      sub_groups: [{ href: inner.href }],
    })
    await bench.pce.labelGroups.create({ name: 'empty', key: 'app', labels: [] })
    const everybody: Json[] = await bench.pce.workloads.getAll('draft', null, { params: { include: 'labels' } })
    const prod = hrefOf('env', 'prod')
    const has = (workload: Json, href: string) => workload.labels.some((label: Json) => label.href === href)
    const expected = everybody
      .filter((one) => apps.some(({ href }) => has(one, href)) && has(one, prod))
      .map(({ href }) => href)
      .sort()
    t.ok(expected.length > 2)
    for (const group of ['labelgroup:outer', outer.href, { href: outer.href }]) {
      simulator.clearRequests()
      const answer = await bench.ok('get-workloads', { labels: [group, 'env=prod'] })
      t.same(answer.data.map(([href]: Json) => href).sort(), expected)
      t.equal(answer.total, expected.length)
      const { query } = simulator.requests.find(({ path }) => path.endsWith('/workloads'))!
      t.same(
        JSON.parse(query.labels!),
        apps.map(({ href }) => [prod, href]),
      )
    }
    const one = await bench.ok('get-workloads', { labels: ['labelgroup:outer', 'app=crm'] })
    t.equal(one.total, everybody.filter((each) => has(each, apps[1]!.href)).length, 'a label of the group')
    for (const [refs, message] of [
      [['labelgroup:empty'], 'The label group "empty" has no labels, so no workload is in it.'],
      [['labelgroup:outer', 'app=dns'], 'No workload has "app=dns" and a label of the label group "outer".'],
    ] as const)
      t.equal((await bench.fails('get-workloads', { labels: refs }, 'invalid_argument')).message, message)
    const missing = await bench.fails('get-workloads', { labels: 'labelgroup:oter' }, 'not_found')
    t.same(missing.near_names, ['outer'])
  })

  await t.test('compares a label group here that is too large for a request', async (t) => {
    const made = [(await bench.pce.labels.getAll()).find(({ key, value }) => key === 'app' && value === 'payments')!]
    for (let at = 0; at < 100; at += 1) made.push(await bench.pce.labels.create({ key: 'app', value: `many-${at}` }))
    await bench.pce.labelGroups.create({ name: 'wide', key: 'app', labels: made.map(({ href }) => ({ href })) })
    const fields = ['href', 'app']
    const expected = await bench.ok('get-workloads', { labels: ['app=payments', 'env=prod'], fields })
    simulator.clearRequests()
    const answer = await bench.ok('get-workloads', { labels: ['labelgroup:wide', 'env=prod'], fields })
    t.same([answer.data, answer.total, answer.truncated], [expected.data, expected.total, false])
    const { query } = simulator.requests.find(({ path }) => path.endsWith('/workloads'))!
    t.equal((JSON.parse(query.labels!) as Json[]).length, 1, 'the PCE still narrows it by the other label')
  })

  await t.test('passes every other filter to the PCE unchanged', async (t) => {
    simulator.clearRequests()
    await bench.ok('get-workloads', {
      name: 'x',
      hostname: 'db',
      ip_address: '10.',
      description: 'd',
      managed: true,
      online: false,
      enforcement_mode: 'full',
    })
    partial(t, simulator.requests.find(({ path }) => path.endsWith('/workloads'))!.query, {
      name: 'x',
      hostname: 'db',
      ip_address: '10.',
      description: 'd',
      managed: 'true',
      online: 'false',
      enforcement_mode: 'full',
    })
    for (const args of [{ name: '' }, { enforcement_mode: 'on' }, { max_results: 10_001 }])
      await bench.fails('get-workloads', args, 'invalid_argument')
  })

  await t.test('managed means having a VEN, not having an agent object', async (t) => {
    const answer = await bench.ok('get-workloads', { max_results: 200, fields: ['managed', 'os_type'] })
    const unmanaged = everything.filter((workload) => workload.managed === false)
    t.ok(unmanaged.length > 0)
    t.equal(column(answer, 'managed').filter((managed: boolean) => !managed).length, unmanaged.length)
    t.ok(column(answer, 'os_type').every((os: string | null) => [null, 'linux', 'windows'].includes(os)))
  })

  await t.test('full returns the whole object with labels spelled out', async (t) => {
    const { workloads, columns } = await bench.ok('get-workloads', {
      labels: 'app=payments',
      detail_level: 'full',
      max_results: 1,
    })
    t.equal(columns, undefined)
    partial(t, workloads, [
      {
        href: /workloads/,
        agent: {},
        managed: true,
        labels: [{ key: 'role' }, { key: 'app' }, { key: 'env' }, { key: 'loc' }].map((label) => ({
          ...label,
          href: /labels/,
          value: /./,
        })),
      },
    ])
    const few = await bench.ok('get-workloads', { labels: 'app=payments', detail_level: 'labels_only', max_results: 2 })
    t.same(few.columns.slice(0, 3), ['href', 'name', 'hostname'])
    t.notOk(few.columns.includes('managed'))
  })

  await t.test('says when nothing matches, in the same envelope', async (t) => {
    partial(t, await bench.ok('get-workloads', { hostname: 'no-such-host' }), {
      total: 0,
      returned: 0,
      truncated: false,
      message: /No workload/,
    })
  })

  await t.test('never presents a truncated answer as complete', async (t) => {
    const answer = await bench.ok('get-workloads', { max_results: 10 })
    partial(t, answer, {
      total: everything.length,
      returned: 10,
      truncated: true,
      pce_truncated: true,
      pce_total: everything.length,
      next_cursor: /./,
    })
  })

  await t.test('counts for a PCE that sends no total', async (t) => {
    const path = '/orgs/1/workloads'
    simulator.faults.add({ kind: 'headers', path, times: 2, headers: { 'x-total-count': null } })
    partial(t, await bench.ok('get-workloads', { max_results: 3 }), { total: everything.length, truncated: true })
  })

  await t.test('counts filtered matches although X-Total-Count covers the whole estate', async (t) => {
    const matching = everything.filter(({ hostname }) => hostname?.includes('prod')).length
    const answer = await bench.ok('get-workloads', { hostname: 'prod', max_results: 3 })
    partial(t, answer, {
      total: matching,
      returned: 3,
      truncated: true,
      pce_total: everything.length,
    })
    const enough = await bench.ok('get-workloads', { hostname: 'prod', max_results: matching })
    partial(t, enough, { total: matching, truncated: false, pce_truncated: false })
    t.notOk('next_cursor' in enough)
  })

  await t.test('returns every workload once at every level of detail, within the budget', async (t) => {
    const small = await startBench(t, { budget: 12_000 })
    for (const detail of ['compact', 'labels_only', 'full']) {
      const list = detail === 'full' ? 'workloads' : 'data'
      const { items, pages } = await follow(small, 'get-workloads', { detail_level: detail }, list)
      const hrefs = items.map((item) => (detail === 'full' ? item.href : item[0]))
      t.same(
        hrefs,
        everything.map(({ href }) => href),
        detail,
      )
      t.ok(
        pages.every((page) => Buffer.byteLength(JSON.stringify(page)) <= 12_000),
        `${detail}: bytes`,
      )
      t.ok(pages.every((page) => page.returned === page[list].length))
    }
    const { items } = await follow(small, 'get-workloads', { hostname: 'prod', max_results: 20 }, 'data')
    t.equal(items.length, everything.filter(({ hostname }) => hostname?.includes('prod')).length, 'with a filter')
  })

  await t.test('escapes and clips user text', async (t) => {
    const hidden = String.fromCodePoint(0xe0049, 0xe0067)
    const { href } = await bench.pce.workloads.create({
      name: `evil\u202Ename\u200B${hidden}`,
      hostname: 'evil-host',
      description: `line one\nline two ${'x'.repeat(3000)}`,
      interfaces: [{ name: 'eth0', address: '10.99.0.1' }],
    })
    const compact = await bench.ok('get-workloads', { hostname: 'evil-host' })
    t.same(compact.data[0].slice(0, 2), [href, 'evil⟨U+202E⟩name⟨U+200B⟩⟨U+E0049⟩⟨U+E0067⟩'])
    const { workloads } = await bench.ok('get-workloads', { hostname: 'evil-host', detail_level: 'full' })
    t.equal(workloads[0].description, `line one⟨U+000A⟩line two ${'x'.repeat(974)}…`)
  })

  await t.test('reads the label list once a minute, and again for an unknown name', async (t) => {
    const asked = () =>
      simulator.requests.filter(({ method, path }) => method === 'GET' && path.endsWith('/labels')).length
    await bench.ok('get-workloads', { labels: 'app=payments' })
    simulator.clearRequests()
    await bench.ok('get-workloads', { labels: 'app=ordering' })
    t.equal(asked(), 0)
    bench.advance(61_000)
    await bench.ok('get-workloads', { labels: 'app=ordering' })
    t.equal(asked(), 1)
    await bench.pce.labels.create({ key: 'app', value: 'made-elsewhere' })
    await bench.ok('get-workloads', { labels: 'app=made-elsewhere' })
    t.equal(asked(), 2)
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({
      kind: 'status',
      path: '/orgs/1/workloads',
      times: 1,
      status: 406,
      body: [{ token: 'invalid_uri', message: 'Invalid URI' }],
    })
    partial(t, await bench.fails('get-workloads', {}, 'pce_error'), {
      http_status: 406,
      token: 'invalid_uri',
      pce_message: 'Invalid URI',
    })
  })
})

t.test('create-workload', async (t) => {
  const bench = await startBench(t)
  const { simulator } = bench
  const addresses = ['10.77.0.1']

  await t.test('needs no labels and numbers interfaces in order', async (t) => {
    const { workload, labels_created: created } = await bench.ok('create-workload', {
      name: 'bare',
      ip_addresses: ['10.77.0.9', '2001:db8::9'],
    })
    partial(t, workload, { name: 'bare', hostname: 'bare', labels: [] })
    t.same(workload.interfaces, [
      { name: 'eth0', address: '10.77.0.9' },
      { name: 'eth1', address: '2001:db8::9' },
    ])
    t.same(created, [])
    partial(t, simulator.state.find(workload.href), { managed: false, hostname: 'bare' })
  })

  await t.test('attaches exactly the named labels in any form and creates missing ones', async (t) => {
    const answer = await bench.ok('create-workload', {
      name: 'labelled',
      ip_addresses: addresses,
      labels: [{ key: 'app', value: 'pay' }, 'env=prod', 'loc=moon'],
    })
    t.same(answer.workload.labels.map(({ key, value }: Json) => `${key}=${value}`).sort(), [
      'app=pay',
      'env=prod',
      'loc=moon',
    ])
    t.ok(
      answer.workload.labels.every(({ href }: Json) => /^\/orgs\/1\/labels\/\d+$/.test(href)),
      'hrefs, as the contract has them',
    )
    partial(t, answer.labels_created, [{ key: 'loc', value: 'moon', href: /labels/ }])
    t.equal(answer.labels_created.length, 1)
    t.notOk('differences' in answer)
  })

  await t.test('concurrent calls share a new label, created by one of them', async (t) => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) =>
        bench.ok('create-workload', { name: `rack-${n}`, ip_addresses: [`10.77.1.${n}`], labels: ['loc=rack'] }),
      ),
    )
    const hrefs = new Set(answers.flatMap((answer) => answer.workload.labels.map((label: Json) => label.href)))
    t.equal(hrefs.size, 1)
    t.equal(answers.flatMap((answer) => answer.labels_created).length, 1)
  })

  await t.test('a bad address, a second value of a key or an unknown href fails before any write', async (t) => {
    bench.writes()
    for (const bad of [
      ['10.0.0.256'],
      ['10.0.0.0/8'],
      ['010.0.0.1'],
      ['1'],
      ['fe80::1%eth0'],
      ['host'],
      ['10.0.0.1', '::ffff:10.0.0.1'],
      [],
    ]) {
      await bench.fails('create-workload', { name: 'x', ip_addresses: bad, labels: ['loc=never'] }, 'invalid_argument')
    }
    await bench.fails(
      'create-workload',
      { name: 'x', ip_addresses: addresses, labels: ['app=pay', 'app=payments'] },
      'invalid_argument',
    )
    await bench.fails(
      'create-workload',
      { name: 'x', ip_addresses: addresses, labels: ['nonsense'] },
      'invalid_argument',
    )
    await bench.fails(
      'create-workload',
      { name: 'x', ip_addresses: addresses, labels: ['/orgs/1/labels/99999'] },
      'label_not_found',
    )
    t.same(bench.writes(), [])
  })

  await t.test('warns about a taken name and a label that differs only in case or spaces', async (t) => {
    const answer = await bench.ok('create-workload', { name: 'bare', ip_addresses: addresses, labels: ['app=Pay'] })
    partial(t, answer.warnings, [
      /already used/,
      /^The address 10\.77\.0\.1 is already that of "labelled" /,
      /differs only in case or spaces/,
    ])
  })

  await t.test('a dry run shows every request and sends nothing', async (t) => {
    bench.writes()
    const { requests, dry_run: dry } = await bench.ok('create-workload', {
      name: 'dry',
      ip_addresses: addresses,
      labels: ['loc=mars', 'env=prod'],
      dry_run: true,
    })
    t.equal(dry, true)
    partial(t, requests, [
      { method: 'POST', path: '/orgs/1/labels', body: { key: 'loc', value: 'mars' } },
      {
        method: 'POST',
        path: '/orgs/1/workloads',
        body: { name: 'dry', labels: [{ href: '{href of loc=mars}' }, { href: /labels/ }] },
      },
    ])
    t.same(bench.writes(), [])
  })

  await t.test('deletes the labels it created if the workload is refused', async (t) => {
    simulator.faults.add({
      kind: 'status',
      path: '/orgs/1/workloads',
      method: 'POST',
      times: 1,
      status: 406,
      body: [{ token: 'nope', message: 'Nope' }],
    })
    const error = await bench.fails(
      'create-workload',
      { name: 'x', ip_addresses: addresses, labels: ['loc=venus'] },
      'pce_error',
    )
    partial(t, error, { rolled_back: true, token: 'nope', http_status: 406 })
    t.same(error.labels_created, [], 'none is left of those that were made')
    t.same((await bench.ok('get-labels', { value: 'venus' })).labels, [])
  })

  await t.test('says what is left if that fails too', async (t) => {
    simulator.faults.add(
      {
        kind: 'status',
        path: '/orgs/1/workloads',
        method: 'POST',
        times: 1,
        status: 406,
        body: [{ token: 'nope', message: 'Nope' }],
      },
      { kind: 'status', path: '/orgs/1/labels', method: 'DELETE', times: 1, status: 403 },
    )
    const error = await bench.fails(
      'create-workload',
      { name: 'x', ip_addresses: addresses, labels: ['loc=pluto'] },
      'pce_error',
    )
    partial(t, error, { partial: true, token: 'nope', written: [{ href: /labels/ }], rollback_error: /./ })
    t.notOk('rolled_back' in error)
    partial(t, (await bench.ok('get-labels', { value: 'pluto' })).labels, [{ href: error.written[0].href }])
  })

  await t.test('a lost answer is outcome_unknown; labels stay, since the workload may have them', async (t) => {
    for (const kind of ['commit-then-drop', 'status'] as const) {
      simulator.faults.add({ kind, path: '/orgs/1/workloads', method: 'POST', times: 1, status: 502 })
      const error = await bench.fails(
        'create-workload',
        { name: `lost-${kind}`, ip_addresses: addresses, labels: [`loc=${kind}`] },
        'outcome_unknown',
      )
      partial(t, error, { partial: true, written: [{ href: /labels/ }] })
      t.equal((await bench.ok('get-labels', { value: kind })).labels.length, 1)
    }
  })

  await t.test('failing to read the result back is a warning', async (t) => {
    simulator.faults.add({ kind: 'status', path: /\/workloads\/[^/]+$/, method: 'GET', times: 10, status: 404 })
    partial(t, await bench.ok('create-workload', { name: 'unseen', ip_addresses: ['10.77.0.2'] }), {
      workload: { name: 'unseen' },
      warnings: [/read back/],
    })
    simulator.faults.clear()
  })
})
