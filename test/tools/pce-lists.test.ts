/** What the PCE keeps beside its policy: events and pairing profiles. */
import t, { type Test } from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { partial } from '../partial.js'
import { startServer, type Reply, type TestServer } from '../pce-client/support.js'
import { benchOf, NOW, startBench, type Bench, type Json } from './harness.js'

/** Every object of a list tool, by following its cursor. */
async function follow(bench: Bench, tool: string, args: object, list: string): Promise<{ items: Json[]; last: Json }> {
  const items: Json[] = []
  let cursor: string | undefined
  for (let page = 0; page < 300; page += 1) {
    const answer: Json = await bench.ok(tool, { ...args, ...(cursor && { cursor }) })
    items.push(...answer[list])
    cursor = answer.next_cursor
    if (cursor === undefined) return { items, last: answer }
  }
  throw new Error('no end')
}

const hrefsOf = (objects: readonly Json[]) => objects.map(({ href }) => href)

t.test('get-events', async (t) => {
  const NAME = 'get-events'
  let clock = NOW
  const bench = await startBench(t, { now: () => clock, budget: 200_000 })
  const { pce, simulator } = bench
  for (let n = 0; n < 130; n += 1) {
    clock += 1000
    await pce.labels.create({ key: 'app', value: `made-${n}` })
  }
  const [label] = await pce.labels.getAll('draft', null, { params: { value: 'made-0' } })
  clock += 1000
  await pce.labels.update(label!.href, { value: 'made-zero' })
  await pce.labels.create({ key: 'app', value: 'made-1' }).catch(() => undefined)
  const stranger = createPceClient({ url: 'http://127.0.0.1', port: Number(new URL(simulator.url).port) })
  stranger.setCredentials('api_x', 'wrong')
  await stranger.labels.get().catch(() => undefined)
  t.teardown(() => stranger.close())
  const everything: Json[] = await pce.events.getAll()

  await t.test('returns the newest 25 by default, each complete', async (t) => {
    const answer = await bench.ok(NAME)
    t.same(hrefsOf(answer.events), hrefsOf(everything).slice(0, 25))
    partial(t, answer, { total_count: everything.length, truncated: true, next_cursor: /./ })
    t.notOk('note' in answer)
    const sent = everything.find(({ event_type: type }) => type === 'label.update')
    const shown = answer.events.find(({ href }: Json) => href === sent.href)
    t.same(shown, {
      href: sent.href,
      event_type: 'label.update',
      timestamp: sent.timestamp,
      severity: 'info',
      status: 'success',
      created_by: { user: { href: '/users/1', username: 'admin@example.com' } },
      pce_fqdn: sent.pce_fqdn,
      notification_type: null,
      info: null,
      action: sent.action,
      resource_changes: sent.resource_changes,
      notifications: [],
    })
    partial(t, shown.resource_changes, [{ change_type: 'update', changes: { value: { before: 'made-0' } } }])
  })

  await t.test('pages continue even if new events arrive', async (t) => {
    const { items } = await follow(bench, NAME, { max_results: 30 }, 'events')
    t.same(hrefsOf(items), hrefsOf(everything))
    const first = await bench.ok(NAME, { max_results: 10 })
    await pce.labels.create({ key: 'app', value: 'meanwhile' })
    const second = await bench.ok(NAME, { max_results: 10, cursor: first.next_cursor })
    t.same(hrefsOf([...first.events, ...second.events]), hrefsOf(everything).slice(0, 20), 'no event twice')
    await bench.fails(NAME, { severity: 'info', cursor: first.next_cursor }, 'invalid_argument')
    everything.splice(0, everything.length, ...(await pce.events.getAll()))
  })

  await t.test('passes type, severity, status and times to the PCE', async (t) => {
    const all = async (args: object) => (await follow(bench, NAME, args, 'events')).items
    const matching = (wanted: (event: Json) => boolean) => hrefsOf(everything.filter(wanted))
    t.same(
      hrefsOf(await all({ event_type: 'label.update' })),
      matching((one) => one.event_type === 'label.update'),
    )
    t.same(
      hrefsOf(await all({ severity: 'err' })),
      matching((one) => one.severity === 'err'),
    )
    const failed = await all({ status: 'failure' })
    t.same(
      hrefsOf(failed),
      matching((one) => one.status === 'failure'),
    )
    t.ok(failed.length > 1 && failed.length < everything.length)
    const from = new Date(NOW + 20_000).toISOString()
    const until = new Date(NOW + 40_000).toISOString()
    const within = await bench.ok(NAME, { timestamp_gte: from, timestamp_lte: until })
    t.same(
      hrefsOf(within.events),
      matching(({ timestamp }) => timestamp >= from && timestamp <= until),
    )
    t.equal(within.total_count, 21, 'both bounds included')
    const query = simulator.requests.at(-1)?.query
    const sent = { 'timestamp[gte]': from.replace('.000', ''), 'timestamp[lte]': until.replace('.000', '') }
    partial(t, query, sent)
  })

  await t.test('a time is written as for every tool; without a zone it is UTC', async (t) => {
    const utc = await bench.ok(NAME, { timestamp_gte: '2026-06-15T12:02:00Z' })
    t.ok(utc.total_count > 0 && utc.total_count < everything.length)
    const forms = ['2026-06-15T14:02:00+02:00', '2026-06-15T12:02:00.000Z', '2026-06-15t12:02:00z', '2026-06-15 12:02']
    for (const timestamp_gte of [...forms, String(Date.parse('2026-06-15T12:02:00Z') / 1000)])
      t.same(hrefsOf((await bench.ok(NAME, { timestamp_gte })).events), hrefsOf(utc.events), timestamp_gte)
    // Later as text, not as a time.
    await bench.ok(NAME, { timestamp_gte: '2026-06-15T13:00:00+02:00', timestamp_lte: '2026-06-15T11:30:00Z' })
    await bench.ok(NAME, { timestamp_gte: '2026-06-14', timestamp_lte: '2026-06-14' })
    partial(t, simulator.requests.at(-1)?.query, {
      'timestamp[gte]': '2026-06-14T00:00:00Z',
      'timestamp[lte]': '2026-06-14T23:59:59.999Z',
    })
    simulator.clearRequests()
    for (const bad of [
      '2026-02-30T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-06-15T24:00:00Z',
      '2026-06-15T12:60:00Z',
      '2026-06-15T12:00:00+99:00',
      'yesterday',
      '2026-06-31',
      '',
    ]) {
      for (const argument of ['timestamp_gte', 'timestamp_lte']) {
        const error = await bench.fails(NAME, { [argument]: bad }, 'invalid_argument')
        partial(t, error, { argument, message: /is not a time/ }, bad)
      }
    }
    const swapped = { timestamp_gte: '2026-06-15T13:00:00+02:00', timestamp_lte: '2026-06-15T10:59:59Z' }
    partial(t, await bench.fails(NAME, swapped, 'invalid_argument'), { message: /swap/ })
    t.same(simulator.requests, [], 'nothing was asked')
  })

  await t.test('other bad arguments are refused', async () => {
    await bench.fails(NAME, { severity: 'serious' }, 'invalid_argument')
    await bench.fails(NAME, { status: 'ok' }, 'invalid_argument')
    await bench.fails(NAME, { created_by: '' }, 'invalid_argument')
    await bench.fails(NAME, { object: '' }, 'invalid_argument')
    await bench.fails(NAME, { max_results: 0 }, 'invalid_argument')
    await bench.fails(NAME, { max_results: 10_001 }, 'invalid_argument')
    await bench.fails(NAME, { cursor: 'x' }, 'invalid_argument')
  })

  await t.test('filters by author, as kind or href, across pages', async (t) => {
    const system = everything.filter(({ created_by: by }) => 'system' in by)
    t.ok(system.length > 0)
    t.same(hrefsOf((await bench.ok(NAME, { created_by: 'system' })).events), hrefsOf(system))
    const user = await follow(bench, NAME, { created_by: 'user', max_results: 40 }, 'events')
    t.equal(user.items.length, everything.length - system.length)
    partial(t, user.last, { total_count: user.items.length, pce_total: everything.length, truncated: false })
    t.equal((await bench.ok(NAME, { created_by: ' /users/1 ' })).total_count, user.items.length)
    for (const created_by of ['/users/11', '/users/'])
      partial(t, await bench.ok(NAME, { created_by }), { events: [], total_count: 0 }, created_by)
    partial(t, await bench.ok(NAME, { created_by: 'agent' }), { events: [], total_count: 0, truncated: false })
  })

  await t.test('filters by the name of the author; a name of nobody is told who there is', async (t) => {
    const user = everything.filter(({ created_by: by }) => 'user' in by)
    const found = await bench.ok(NAME, { created_by: 'admin@example.com', max_results: 5 })
    partial(t, found, { total_count: user.length, pce_total: everything.length })
    t.same(hrefsOf(found.events), hrefsOf(user).slice(0, 5))
    const nobody = await bench.ok(NAME, { created_by: 'admin@example.co' })
    const times = everything.map(({ timestamp }) => timestamp).toSorted()
    const sent = `The PCE sent ${everything.length} events (all that it has), from ${times[0]} to ${times.at(-1)}`
    t.same(
      [nobody.events, nobody.total_count, nobody.note],
      [[], 0, `${sent}: none is by "admin@example.co". The most similar name among them is "admin@example.com".`],
    )
    for (const name of ['zoe', 'zoe@example.com'])
      t.equal(
        (await bench.ok(NAME, { created_by: name })).note,
        `${sent}: none is by "${name}". They are by "admin@example.com", "system".`,
      )
  })

  await t.test('filters by the object that changed, by href in any version or exact name', async (t) => {
    clock += 1000
    const list = await bench.ok('create-iplist', { name: 'Watched', ip_ranges: [{ from_ip: '10.0.0.1' }] })
    await bench.ok('create-iplist', { name: 'Watched too', ip_ranges: [{ from_ip: '10.0.0.1' }] })
    clock += 1000
    await bench.ok('update-iplist', { href: list.href, description: 'x' })
    await pce.ipLists.update(list.href, { name: '' }).catch(() => undefined)
    const { ruleset } = await bench.ok('create-ruleset', {
      name: 'Watched set',
      scopes: [[]],
      rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }] }],
    })
    await bench.ok('update-sec-rule', { href: ruleset.rules[0].href, enabled: false })
    everything.splice(0, everything.length, ...(await pce.events.getAll()))
    const about = async (object: string): Promise<string[]> =>
      (await bench.ok(NAME, { object })).events.map(
        ({ event_type: type, status }: Json) => `${type}${status === 'success' ? '' : ' failed'}`,
      )
    t.same(await about('Watched'), ['ip_list.update', 'ip_list.create'])
    const failed = 'ip_list.update failed'
    t.same(await about(list.href), [failed, 'ip_list.update', 'ip_list.create'], 'also what failed')
    t.same(await about(list.href.replace('/draft/', '/active/')), [failed, 'ip_list.update', 'ip_list.create'])
    t.same(
      await about(ruleset.href),
      ['sec_rule.update', 'sec_rule.create', 'rule_set.create'],
      'with what is inside it',
    )
    t.same(await about('app=made-3'), ['label.create'])
    t.same(await about('made-3'), ['label.create'])
    t.same(await about('watched'), [])
    t.same(await about(`${list.href}9`), [])
    const none = await bench.ok(NAME, { object: 'nothing' })
    partial(t, none, {
      total_count: 0,
      pce_total: everything.length,
      note: new RegExp(
        `^The PCE sent ${everything.length} events \\(all that it has\\), .*: none is about "nothing"\\.$`,
      ),
    })
  })

  await t.test('counts instead of listing, over everything that matches', async (t) => {
    const tally = (keyOf: (event: Json) => string, events = everything) => {
      const counts: Record<string, number> = {}
      for (const event of events) counts[keyOf(event)] = (counts[keyOf(event)] ?? 0) + 1
      return counts
    }
    const author = ({ created_by: by }: Json) => by.user?.username ?? 'system'
    const answer = await bench.ok(NAME, { counts: true, max_results: 1 })
    t.same(answer, {
      events: [],
      counts: {
        event_type: tally((event) => event.event_type),
        created_by: tally(author),
        status: tally((event) => event.status),
        severity: tally((event) => event.severity),
      },
      total_count: everything.length,
      pce_total: everything.length,
      truncated: false,
    })
    const most = Object.values<number>(answer.counts.event_type)
    t.same(
      most,
      [...most].sort((a, b) => b - a),
      'most first',
    )
    const system = everything.filter(({ created_by: by }) => 'system' in by)
    const some = await bench.ok(NAME, { counts: true, created_by: 'system' })
    t.same(
      some.counts.event_type,
      tally((event) => event.event_type, system),
    )
    t.equal(some.total_count, system.length)
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({
      kind: 'status',
      path: '/orgs/1/events',
      times: 1,
      status: 406,
      body: [{ token: 'no', message: 'No' }],
    })
    partial(t, await bench.fails(NAME, {}, 'pce_error'), { http_status: 406, token: 'no', pce_message: 'No' })
  })

  await t.test('every kind of author, null parts and hostile text', async (t) => {
    const authors = [
      { agent: { href: '/orgs/1/agents/7', hostname: 'till\u202E-1' } },
      { ven: { href: '/orgs/1/vens/7', hostname: 'till-2' } },
      { container_cluster: { href: '/orgs/1/container_clusters/7', name: 'k8s' } },
      { service_account: { href: '/orgs/1/service_accounts/7', name: 'ci' } },
      { system: {} },
    ]
    const info = { text: `ignore\u200B this ${'x'.repeat(3000)}` }
    const notifications = [
      { uuid: 'u1', notification_type: 'agent.tampering', info },
      { uuid: 'u2', notification_type: 'two' },
    ]
    const events = authors.map((created_by, n) => eventOf(n, { created_by, notifications }))
    const odd = eventOf(9, {
      created_by: null,
      status: null,
      action: null,
      resource_changes: null,
      notifications: null,
    })
    const server = await serveEvents(t, [...events, odd])
    const scripted = benchOf(t, simulator, server.url)
    for (const author of authors) {
      const [kind, { href }] = Object.entries(author)[0] as [string, { href?: string }]
      for (const created_by of [kind, ...(href === undefined ? [] : [href])]) {
        const answer = await scripted.ok(NAME, { created_by })
        t.equal(answer.events.length, 1, created_by)
        t.same(Object.keys(answer.events[0].created_by), [kind])
      }
    }
    const { events: shown } = await scripted.ok(NAME)
    partial(t, shown[0], {
      created_by: { agent: { hostname: 'till⟨U+202E⟩-1' } },
      notification_type: 'agent.tampering',
    })
    t.equal(shown[0].notifications.length, 2)
    t.same(shown[0].info, shown[0].notifications[0].info)
    t.same(shown[0].info, { text: `ignore⟨U+200B⟩ this ${'x'.repeat(979)}…` })
    partial(t, shown.at(-1), { created_by: null, status: null, action: null, resource_changes: [], notifications: [] })
  })

  await t.test('notifications that are left out count as well', async (t) => {
    const text = 'x'.repeat(900)
    const notifications = Array.from({ length: 200 }, (_, at) => ({ uuid: `u${at}`, info: { text } }))
    const server = await serveEvents(t, [eventOf(0, { notifications })])
    const [event] = (await benchOf(t, simulator, server.url).ok(NAME)).events
    t.ok(event.notifications.length > 10)
    t.equal(event.notifications.length + event.omitted, 200)
  })

  await t.test('an event too large for an answer says what it omits and hides no other', async (t) => {
    const change = { change_type: 'update', resource: { workload: { href: '/orgs/1/workloads/x' } }, changes: {} }
    const huge = eventOf(1, {
      resource_changes: Array.from({ length: 2000 }, () => change),
      notifications: [{ uuid: 'u' }],
    })
    const server = await serveEvents(t, [eventOf(0), huge, eventOf(2)])
    const scripted = benchOf(t, simulator, server.url)
    const { items } = await follow(scripted, NAME, {}, 'events')
    t.same(hrefsOf(items), ['/orgs/1/events/0', '/orgs/1/events/1', '/orgs/1/events/2'])
    const [, large] = items
    t.ok(large.resource_changes.length > 100)
    t.equal(large.resource_changes.length + large.omitted, 2000)
    t.equal(large.notifications.length, 1)
    t.ok(JSON.stringify(large).length <= 80_000)
    t.notOk('omitted' in items[0])
    const first = await scripted.ok(NAME)
    t.ok(JSON.stringify(first).length <= 80_000)
  })

  await t.test("says how to continue beyond the PCE's 10,000", async (t) => {
    const events = Array.from({ length: 10_300 }, (_, n) =>
      eventOf(n, n % 5 === 0 ? { created_by: { system: {} } } : {}),
    )
    const server = await serveEvents(t, events, 10_000)
    const scripted = benchOf(t, simulator, server.url)
    const first = await scripted.ok(NAME)
    partial(t, first, { pce_total: 10_300, total_count: 10_300, truncated: true, note: /10000.*timestamp_lte/ })
    t.equal(first.events.length, 25)
    t.same(server.server.requests(), ['GET /orgs/1/events?max_results=26'], 'no more is asked for than a page needs')

    const roomy = benchOf(t, simulator, server.url, { budget: 800_000 })
    const { items, last } = await follow(roomy, NAME, { max_results: 3000 }, 'events')
    t.equal(new Set(hrefsOf(items)).size, 10_000, 'the cursor goes as far as the PCE does')
    partial(t, last, { truncated: false, note: /timestamp_lte/ })
    t.notOk(
      server.server.seen.some(({ headers }) => 'prefer' in headers),
      'no job is started for the rest',
    )

    const filtered = await scripted.ok(NAME, { created_by: 'system', max_results: 5 })
    partial(t, filtered, { total_count: 2000, note: /timestamp_lte/ }, 'all that can be seen was looked at')

    const few = await serveEvents(t, events.slice(0, 3), 10_000, 10_300)
    const narrow = benchOf(t, simulator, few.url)
    const within = await narrow.ok(NAME, { timestamp_gte: '2026-06-01T00:00:00Z' })
    t.equal(within.events.length, 3)
    t.notOk('note' in within, 'three that match are all, however many there are beside them')
  })
})

t.test('get-pairing-profiles', async (t) => {
  const NAME = 'get-pairing-profiles'
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const label = (await pce.labels.getAll()).find(({ key, value }) => key === 'app' && value === 'payments')!
  const made = await pce.pairingProfiles.create({
    name: 'Linux\u202E servers',
    enabled: false,
    enforcement_mode: 'selective',
    enforcement_mode_lock: false,
    labels: [{ href: label.href }],
    key_lifespan: 3600,
    allowed_uses_per_key: 'unlimited',
  })

  await t.test('shows what a paired workload gets, with labels spelled out', async (t) => {
    const answer = await bench.ok(NAME)
    partial(t, answer, { total_count: 2, pce_total: 2, truncated: false })
    partial(t, answer.pairing_profiles[0], { name: 'Default (Servers)', is_default: true, enabled: true, labels: [] })
    t.same(answer.pairing_profiles[1], {
      href: made.href,
      name: 'Linux⟨U+202E⟩ servers',
      enforcement_mode: 'selective',
      enforcement_mode_lock: false,
      enabled: false,
      is_default: false,
      labels: ['app=payments'],
    })
    const full = await bench.ok(NAME, { detail_level: 'full' })
    t.same(full.pairing_profiles[1].labels, [{ href: label.href, key: 'app', value: 'payments' }])
    t.notMatch(JSON.stringify(answer), /activation|key_lifespan/, 'nothing that pairs')
  })

  await t.test('shows the limits of its keys with detail_level full, or as fields', async (t) => {
    const limitsOf = ({ key_lifespan, allowed_uses_per_key }: Json) => [key_lifespan, allowed_uses_per_key]
    const full = await bench.ok(NAME, { detail_level: 'full' })
    t.same(limitsOf(full.pairing_profiles[1]), [3600, 'unlimited'])
    const { pairing_profiles: rows } = await bench.ok(NAME, { fields: ['name', 'key_lifespan'] })
    t.same(rows[1], { name: 'Linux⟨U+202E⟩ servers', key_lifespan: 3600 })
  })

  await t.test('also spells out a label created since the list was read', async (t) => {
    const fresh = await pce.labels.create({ key: 'app', value: 'brand-new' })
    await pce.pairingProfiles.create({ name: 'New', enabled: true, labels: [{ href: fresh.href }] })
    const {
      pairing_profiles: [profile],
    } = await bench.ok(NAME, { name: 'New' })
    t.same(profile.labels, ['app=brand-new'])
  })

  await t.test('returns 50 by default, filters by substring, and pages', async (t) => {
    for (let n = 1; n <= 58; n += 1) await pce.pairingProfiles.create({ name: `Shop ${n}`, enabled: true })
    const first = await bench.ok(NAME)
    t.equal(first.pairing_profiles.length, 50)
    partial(t, first, { total_count: 61, truncated: true })
    const all = hrefsOf(await pce.pairingProfiles.getAll())
    t.same(hrefsOf((await follow(bench, NAME, {}, 'pairing_profiles')).items), all)
    t.same(hrefsOf((await follow(bench, NAME, { max_results: 9 }, 'pairing_profiles')).items), all)
    partial(t, await bench.ok(NAME, { name: 'Shop 5' }), { total_count: 10, truncated: false })
    partial(t, await bench.ok(NAME, { name: 'none such' }), { pairing_profiles: [], total_count: 0 })
    await bench.fails(NAME, { name: 'Shop', cursor: first.next_cursor }, 'invalid_argument')
    await bench.fails(NAME, { max_results: 0 }, 'invalid_argument')
    await bench.fails(NAME, { name: '' }, 'invalid_argument')
    await bench.fails(NAME, { label: 'x' }, 'invalid_argument')
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({ kind: 'status', path: '/orgs/1/pairing_profiles', times: 1, status: 403 })
    partial(t, await bench.fails(NAME, {}, 'pce_error'), { http_status: 403, hint: /permission/ })
  })
})

function eventOf(n: number, more: object = {}): Json {
  return {
    href: `/orgs/1/events/${n}`,
    timestamp: '2026-06-15T12:00:00.000Z',
    pce_fqdn: 'pce.example.com',
    event_type: 'workloads.bulk_update',
    status: 'success',
    severity: 'info',
    created_by: { user: { href: '/users/1', username: 'admin@example.com' } },
    action: { uuid: 'a', api_method: 'PUT' },
    resource_changes: [],
    notifications: [],
    ...more,
  }
}

/** A PCE of these events: never more than `most` in one answer, and its count is `total` whatever the filters. */
async function serveEvents(
  t: Test,
  events: Json[],
  most = 10_000,
  total = events.length,
): Promise<{ url: string; server: TestServer }> {
  const server = await startServer(t, ({ path }): Reply => {
    const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 100)
    return { body: events.slice(0, Math.min(asked, most)), headers: { 'x-total-count': String(total) } }
  })
  return { url: `http://127.0.0.1:${server.port}`, server }
}
