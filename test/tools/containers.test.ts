/** Container clusters, the profiles of their namespaces and what runs in them. */
import t, { type Test } from 'tap'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import type { Estate } from '../../pce-simulator/model.js'
import { smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { benchOf, startBench, type Bench, type Json } from './harness.js'

/** A refusal that leaves no trace at the PCE. */
async function refused(t: Test, bench: Bench, tool: string, args: object, code: string): Promise<Json> {
  bench.writes()
  const error = await bench.fails(tool, args, code)
  t.same(bench.writes(), [], 'nothing was written')
  return error
}

/** Every object of a list tool, by following its cursor. */
async function follow(bench: Bench, tool: string, args: object, list: string): Promise<Json[]> {
  const items: Json[] = []
  let cursor: string | undefined
  for (let page = 0; page < 200; page += 1) {
    const answer: Json = await bench.ok(tool, { ...args, ...(cursor && { cursor }) })
    items.push(...answer[list])
    cursor = answer.next_cursor
    if (cursor === undefined) return items
  }
  throw new Error('no end')
}

const hrefsOf = (objects: readonly Json[]) => objects.map(({ href }) => href)
const pairs = (labels: Json[]) => labels.map(({ key, value }) => `${key}=${value}`).sort()

t.test('get-container-clusters', async (t) => {
  const bench = await startBench(t)
  const { simulator, pce } = bench

  await t.test('shows every cluster with its mode and nodes', async (t) => {
    const clusters: Json[] = await pce.containerClusters.getAll()
    t.ok(clusters.length > 1)
    const answer = await bench.ok('get-container-clusters')
    t.same(
      answer.container_clusters,
      clusters.map(({ href, name, online, cluster_mode, kubelink_version, container_runtime, nodes, ...more }) => ({
        href,
        name,
        online,
        clas_mode: cluster_mode === 'clas',
        cluster_mode,
        kubelink_version,
        container_runtime,
        manager_type: more.manager_type,
        last_connected: more.last_connected,
        errors: [],
        node_count: nodes.length,
        nodes: nodes.map((node: Json) => ({ name: node.name })),
      })),
    )
    partial(t, answer, { total_count: clusters.length, pce_total: clusters.length, truncated: false })
  })

  await t.test('shows what is wrong with a cluster; what the PCE does not tell is absent', async (t) => {
    const href = '/orgs/1/container_clusters/broken'
    const event = '/orgs/1/events/7'
    const clusters = [
      {
        href,
        last_connected: '2026-06-13T12:00:00.000Z',
        manager_type: 'Kubernetes v1.30.1',
        errors: [
          { audit_event: { href: event }, duplicate_ids: ['m1'], error_type: 'duplicate_machine_ids' },
          { audit_event: null, duplicate_ids: null, error_type: null },
        ],
      },
      { href, online: null, errors: null, nodes: null, cluster_mode: null },
    ]
    const server = await startServer(t, () => ({ body: clusters, headers: { 'x-total-count': '2' } }))
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const [broken, silent] = (await scripted.ok('get-container-clusters')).container_clusters
    t.same(
      [broken.errors, broken.last_connected, broken.manager_type],
      [[`duplicate_machine_ids: m1 (${event})`, 'unknown'], '2026-06-13T12:00:00.000Z', 'Kubernetes v1.30.1'],
    )
    t.same(Object.keys(silent), ['href', 'node_count', 'nodes'])
  })

  await t.test('returns 50 by default, filters by substring, and pages', async (t) => {
    simulator.clearRequests()
    for (let n = 1; n <= 60; n += 1) await pce.containerClusters.create({ name: `edge-${n}` })
    const first = await bench.ok('get-container-clusters')
    t.equal(first.container_clusters.length, 50)
    partial(t, first, { total_count: 62, truncated: true, next_cursor: /./ })
    partial(t, await bench.ok('get-container-clusters', { name: 'edge-6' }), { total_count: 2, truncated: false })
    const all = hrefsOf(await pce.containerClusters.getAll())
    t.same(hrefsOf(await follow(bench, 'get-container-clusters', {}, 'container_clusters')), all)
    t.same(hrefsOf(await follow(bench, 'get-container-clusters', { max_results: 7 }, 'container_clusters')), all)
    const half = await bench.ok('get-container-clusters', { max_results: 1 })
    await bench.fails('get-container-clusters', { name: 'edge', cursor: half.next_cursor }, 'invalid_argument')
    await bench.fails('get-container-clusters', { max_results: 0 }, 'invalid_argument')
    await bench.fails('get-container-clusters', { name: '' }, 'invalid_argument')
  })

  await t.test("asks in the caller's organisation", async (t) => {
    const other = await startBench(t, { workloads: 20, flows: 10, orgId: 7 })
    await other.ok('get-container-clusters')
    await other.ok('get-kubernetes-workloads')
    await other.ok('get-pairing-profiles')
    const paths = other.simulator.requests.map(({ path }) => path)
    t.same(
      paths.filter((path) => !path.startsWith('/api/v2/orgs/7/')),
      [],
    )
  })

  await t.test('escapes hostile names and fits a cluster with thousands of nodes', async (t) => {
    const estate = withClusters((cluster) => ({
      ...cluster,
      name: 'bad\u202Ename',
      nodes: Array.from({ length: 5000 }, (_, n) => ({ name: `node\u200B-${n}` })),
    }))
    const large = await startBench(t, { estate })
    const found = await follow(large, 'get-container-clusters', {}, 'container_clusters')
    partial(t, found, [{ name: 'bad⟨U+202E⟩name', node_count: 5000 }, { node_count: 5000 }])
    t.equal(found[0].nodes[0].name, 'node⟨U+200B⟩-0')
    const answer = JSON.stringify(await large.ok('get-container-clusters'))
    t.ok(answer.length <= 80_000)
    t.notMatch(answer, /[\u200B\u202E]/)
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    simulator.faults.add({ kind: 'status', path: '/orgs/1/container_clusters', times: 1, status: 403 })
    partial(t, await bench.fails('get-container-clusters', {}, 'pce_error'), { http_status: 403, hint: /permission/ })
  })
})

t.test('get-container-workload-profiles', async (t) => {
  const NAME = 'get-container-workload-profiles'
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const [cluster, other] = await pce.containerClusters.getAll()
  const { href } = cluster!

  await t.test('asks which cluster is meant if there are several', async (t) => {
    const answer = await bench.ok(NAME)
    partial(t, answer, { message: /cluster_href/ })
    t.same(
      answer.clusters,
      [cluster, other].map((one: Json) => ({ href: one.href, name: one.name, online: one.online })),
    )
    t.notOk('profiles' in answer)
  })

  await t.test("shows only the named cluster's profiles, including the default, with labels spelled out", async (t) => {
    const profiles: Json[] = await pce.containerWorkloadProfiles.getAll('draft', href)
    const answer = await bench.ok(NAME, { cluster_href: href })
    t.same(hrefsOf(answer.profiles), hrefsOf(profiles))
    t.ok(hrefsOf(answer.profiles).every((one: string) => one.startsWith(`${href}/`)))
    partial(t, answer, { total_count: profiles.length, pce_total: profiles.length, truncated: false })
    const standard = answer.profiles.filter((profile: Json) => profile.is_default)
    partial(t, standard, [{ name: 'Default Profile', namespace: null, managed: false, assign_labels: [] }])
    t.equal(standard.length, 1)
    const shop = answer.profiles.find((profile: Json) => profile.namespace === 'web-shop')
    partial(t, shop, { managed: true, enforcement_mode: 'visibility_only' })
    t.same([...shop.assign_labels].sort(), ['app=web-shop', 'env=prod'])
    t.notOk(shop.is_default)
    t.notOk('labels' in shop, 'the newer form says the same')
  })

  await t.test('namespace matches exactly although the PCE matches substrings; managed filters too', async (t) => {
    const inAll = async (args: object) => (await bench.ok(NAME, { cluster_href: href, ...args })).profiles
    partial(t, await inAll({ namespace: 'web-shop' }), [{ namespace: 'web-shop' }])
    t.same(await inAll({ namespace: 'web' }), [])
    t.same(await inAll({ namespace: 'Web-Shop' }), [])
    const unmanaged = await inAll({ managed: false })
    t.ok(unmanaged.length > 0 && unmanaged.every((profile: Json) => !profile.managed))
    const managed = await inAll({ managed: true })
    t.ok(managed.length > 0 && managed.every((profile: Json) => profile.managed))
    t.same(await inAll({ namespace: 'web-shop', managed: false }), [])
  })

  await t.test('filters apply across pages', async (t) => {
    const args = { cluster_href: other!.href, managed: true, max_results: 1 }
    const first = await bench.ok(NAME, args)
    partial(t, first, { total_count: 3, pce_total: 4, truncated: true, next_cursor: /./ })
    t.equal(new Set(hrefsOf(await follow(bench, NAME, args, 'profiles'))).size, 3)
    await bench.fails(NAME, { ...args, managed: false, cursor: first.next_cursor }, 'invalid_argument')
  })

  await t.test('an unknown cluster is not_found; other hrefs are refused', async (t) => {
    simulator.clearRequests()
    await bench.fails(NAME, { cluster_href: '/orgs/1/container_clusters/none' }, 'not_found')
    await bench.fails(NAME, { cluster_href: '/orgs/1/labels/1' }, 'invalid_href')
    await bench.fails(NAME, { cluster_href: href.replace('/orgs/1', '/orgs/2') }, 'invalid_href')
    await bench.fails(NAME, { cluster_href: `${href}/container_workload_profiles` }, 'invalid_href')
    await bench.fails(NAME, { cluster: href }, 'invalid_argument')
    t.notOk(simulator.requests.some(({ path }) => path.endsWith('profiles')))
  })

  await t.test('cluster_href is optional with one cluster; without any it says so', async (t) => {
    const alone = await startBench(t, { estate: withClusters((cluster, index) => (index === 0 ? cluster : null)) })
    const { profiles, total_count: total } = await alone.ok(NAME)
    t.ok(profiles.length > 0)
    t.equal(total, profiles.length)
    t.same(
      (await alone.ok(NAME, { namespace: 'payments' })).profiles.map(({ namespace }: Json) => namespace),
      ['payments'],
    )
    const none = await startBench(t, { estate: smallEstate() })
    t.same(await none.ok(NAME), { message: 'The PCE has no container clusters.', clusters: [] })
  })

  await t.test('shows a choice of labels, escapes names, and resolves bare hrefs', async (t) => {
    const { href: parent } = await pce.containerClusters.create({ name: 'lab\u202E' })
    const labels = await pce.labels.getAll()
    const [web, db] = ['web', 'db'].map((value) =>
      labels.find((label) => label.key === 'role' && label.value === value)!,
    )
    const body = {
      name: 'evil\u200Bname',
      labels: [{ key: 'role', restriction: [web, db].map((one) => ({ href: one!.href })) }],
    }
    await pce.containerWorkloadProfiles.create(body, parent)
    const { profiles } = await bench.ok(NAME, { cluster_href: parent })
    const shown = profiles.find((profile: Json) => profile.name === 'evil⟨U+200B⟩name')
    t.same(shown.labels, [{ key: 'role', restriction: [web, db].map((one) => `role=${one!.value}`) }])
    t.same(shown.assign_labels, [])
    t.equal((await bench.ok(NAME)).clusters.find((one: Json) => one.href === parent).name, 'lab⟨U+202E⟩')
  })
})

t.test('update-container-workload-profile', async (t) => {
  const NAME = 'update-container-workload-profile'
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const [cluster] = await pce.containerClusters.getAll()
  const profiles: Json[] = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
  const { href } = profiles.find((profile) => profile.namespace === 'payments')
  const standard = profiles.find((profile) => profile.namespace === null)
  const PUT = { path: /container_workload_profiles\/[^/]+$/, method: 'PUT', times: 1 }

  await t.test('sends the given fields, reads back, and reports previous values', async (t) => {
    bench.writes()
    const answer = await bench.ok(NAME, { profile_href: href, enforcement_mode: 'full' })
    partial(t, bench.writes(), [{ method: 'PUT', path: `/api/v2${href}`, body: { enforcement_mode: 'full' } }])
    partial(t, answer, {
      href,
      updated_fields: ['enforcement_mode'],
      previous: { enforcement_mode: 'visibility_only' },
      profile: { namespace: 'payments', enforcement_mode: 'full' },
      message: /payments/,
    })
    t.same(Object.keys(answer.previous), ['enforcement_mode'])
    bench.writes()
    partial(t, await bench.ok(NAME, { profile_href: href, enforcement_mode: 'full' }), { updated_fields: [] })
    t.same(bench.writes(), [], 'what already has its value is not sent again')
  })

  await t.test('accepts labels in every form; they replace existing ones; [] clears', async (t) => {
    const all = await pce.labels.getAll()
    const pay = all.find((label) => label.key === 'app' && label.value === 'pay')!
    for (const reference of ['app=pay', pay.href, { href: pay.href }, { key: 'app', value: 'pay' }]) {
      await bench.ok(NAME, { profile_href: href, assign_labels: [] })
      bench.writes()
      const answer = await bench.ok(NAME, { profile_href: href, assign_labels: [reference, reference] })
      t.same(bench.writes().at(-1)?.body, { assign_labels: [{ href: pay.href }] }, JSON.stringify(reference))
      t.same(answer.profile.assign_labels, ['app=pay'])
      t.same(answer.previous.assign_labels, [])
    }
    const cleared = await bench.ok(NAME, { profile_href: href, assign_labels: [] })
    t.same(cleared.profile.assign_labels, [])
    t.same(cleared.previous, { assign_labels: ['app=pay'] })
  })

  await t.test('a dry run shows the request and sends nothing', async (t) => {
    bench.writes()
    const args = { profile_href: standard.href, managed: true, assign_labels: ['app=pay'], dry_run: true }
    const answer = await bench.ok(NAME, args)
    partial(t, answer, {
      dry_run: true,
      previous: { managed: false },
      profile: { managed: true, is_default: true },
      requests: [{ method: 'PUT', path: standard.href, body: { managed: true, assign_labels: [{ href: /labels/ }] } }],
    })
    t.notOk('updated_fields' in answer)
    t.same(bench.writes(), [])
    const { dry_run: _dry, ...real } = args
    partial(t, await bench.ok(NAME, real), { profile: { managed: true }, updated_fields: ['managed', 'assign_labels'] })
  })

  await t.test('refuses bad input before any write', async (t) => {
    await refused(t, bench, NAME, { profile_href: href }, 'no_update_fields')
    await refused(t, bench, NAME, { managed: true }, 'invalid_argument')
    await refused(t, bench, NAME, { profile_href: href, enforcement_mode: 'enforced' }, 'invalid_argument')
    const change = { managed: true }
    const elsewhere = href.replace('/orgs/1', '/orgs/2')
    for (const profile_href of ['x', '/orgs/1/labels/1', cluster!.href, elsewhere, `${href}/x`])
      await refused(t, bench, NAME, { profile_href, ...change }, 'invalid_href')
    const none = href.replace(/[^/]+$/, 'none')
    await refused(t, bench, NAME, { profile_href: none, ...change }, 'not_found')
    const missing = await refused(
      t,
      bench,
      NAME,
      { profile_href: href, assign_labels: ['env=prod', 'app=paymen'], ...change },
      'label_not_found',
    )
    t.same(missing.unresolved, ['app=paymen'])
    t.same(Object.keys(missing.valid_values), ['app=paymen'])
    t.equal(missing.valid_values['app=paymen'][0], 'payments', 'the nearest first')
    const two = { profile_href: href, assign_labels: ['app=pay', 'app=payments'] }
    partial(t, await refused(t, bench, NAME, two, 'invalid_argument'), { argument: 'assign_labels', key: 'app' })
    await refused(t, bench, NAME, { profile_href: href, assign_labels: [{ id: 1 }] }, 'invalid_argument')
    await refused(t, bench, NAME, { ...two, dry_run: true }, 'invalid_argument')
  })

  await t.test("quotes the PCE's refusal", async (t) => {
    const ordering = profiles.find((profile) => profile.namespace === 'ordering')
    const error = await bench.fails(NAME, { profile_href: ordering.href, managed: false }, 'pce_error')
    partial(t, error, {
      http_status: 406,
      token: 'unmanaged_container_workload_profile_labels',
      pce_message: /unmanaged/,
    })
  })

  await t.test('warns about a choice of labels that the new ones replace', async (t) => {
    const role = (await pce.labels.getAll()).filter((label) => label.key === 'role').slice(0, 2)
    const restriction = role.map((label) => ({ href: label.href }))
    const made = await pce.containerWorkloadProfiles.create(
      { name: 'Choice', labels: [{ key: 'role', restriction }] },
      cluster!.href,
    )
    const args = { profile_href: made.href, assign_labels: ['app=pay'] }
    const dry = await bench.ok(NAME, { ...args, dry_run: true })
    const previous = { labels: [{ key: 'role', restriction: role.map(({ value }) => `role=${value}`) }] }
    partial(t, dry, { warnings: [/choice of labels for "role"/], previous })
    const answer = await bench.ok(NAME, args)
    partial(t, answer, { warnings: [/role/], previous })
    t.same(answer.profile.assign_labels, ['app=pay'])
    t.notOk('labels' in answer.profile)
  })

  await t.test('retries a lost answer; an unreadable result is a warning', async (t) => {
    simulator.faults.add({ kind: 'commit-then-drop', ...PUT })
    partial(t, await bench.ok(NAME, { profile_href: href, enforcement_mode: 'idle' }), {
      profile: { enforcement_mode: 'idle' },
    })
    simulator.faults.add({ kind: 'status', ...PUT, method: 'GET', skip: 1, status: 404 })
    const answer = await bench.ok(NAME, { profile_href: href, enforcement_mode: 'selective' })
    partial(t, answer, { warnings: [/read back/], profile: { enforcement_mode: 'selective' } })
  })

  await t.test('reports a change even if its labels cannot be read; fails if nothing was written', async (t) => {
    await bench.ok(NAME, { profile_href: href, assign_labels: ['app=pay'] })
    const args = { profile_href: href, enforcement_mode: 'full' }
    const unreadable = (): void => {
      bench.advance(61_000)
      simulator.faults.clear()
      simulator.faults.add({ kind: 'status', path: /\/labels$/, method: 'GET', status: 503, times: 20 })
    }
    unreadable()
    await refused(t, bench, NAME, { ...args, dry_run: true }, 'pce_error')
    unreadable()
    const answer = await bench.ok(NAME, args)
    t.same(answer.warnings, ['It was changed; the profile is not shown because the labels it names could not be read.'])
    partial(t, answer, { href, updated_fields: ['enforcement_mode'], previous: { enforcement_mode: 'selective' } })
    t.notOk('profile' in answer)
    partial(t, simulator.state.find(href), { enforcement_mode: 'full' })
    unreadable()
    await refused(t, bench, NAME, args, 'pce_error')
    simulator.faults.clear()
    partial(t, await bench.ok(NAME, args), { updated_fields: [], profile: { enforcement_mode: 'full' } })
  })
})

t.test('get-kubernetes-workloads', async (t) => {
  const NAME = 'get-kubernetes-workloads'
  const LIST = 'kubernetes_workloads'
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const [cluster, other] = await pce.containerClusters.getAll()
  const everything: Json[] = await pce.kubernetesWorkloads.getAll()

  await t.test('shows every workload with its labels, mode and cluster', async (t) => {
    const answer = await bench.ok(NAME)
    t.same(hrefsOf(answer[LIST]), hrefsOf(everything))
    partial(t, answer, { total_count: everything.length, pce_total: everything.length, truncated: false })
    const { container_cluster: parent, ...first } = everything[0]
    partial(t, answer[LIST][0], {
      href: first.href,
      name: first.name,
      kind: first.kind,
      namespace: first.namespace,
      enforcement_mode: first.enforcement_mode,
      security_policy_sync_state: first.security_policy_sync_state,
      cluster: parent.name,
    })
    t.notOk(
      answer[LIST].some((one: Json) => 'cluster_href' in one),
      'the name tells which cluster it is',
    )
    for (const args of [{ detail_level: 'full' }, { fields: ['cluster_href'] }])
      partial(t, (await bench.ok(NAME, args))[LIST][0], { cluster_href: parent.href })
    t.same(answer[LIST][0].labels.toSorted(), pairs(first.labels))
    const full = await bench.ok(NAME, { detail_level: 'full' })
    t.same(pairs(full[LIST][0].labels), pairs(first.labels))
    t.ok(first.labels.length > 0)
  })

  await t.test("passes part of the namespace to the PCE's filter", async (t) => {
    const answer = await bench.ok(NAME, { namespace: 'shop' })
    const expected = everything.filter(({ namespace }) => namespace.includes('shop'))
    t.ok(expected.length > 0 && expected.length < everything.length)
    t.same(hrefsOf(answer[LIST]), hrefsOf(expected))
    t.equal(answer.total_count, expected.length)
  })

  await t.test('a cluster without workloads is empty; an unknown one is not_found', async (t) => {
    partial(t, await bench.ok(NAME, { cluster_href: cluster!.href }), { total_count: everything.length })
    partial(t, await bench.ok(NAME, { cluster_href: other!.href }), { [LIST]: [], total_count: 0, truncated: false })
    simulator.clearRequests()
    await bench.fails(NAME, { cluster_href: '/orgs/1/container_clusters/none' }, 'not_found')
    await bench.fails(NAME, { cluster_href: everything[0].href }, 'invalid_href')
    await bench.fails(NAME, { cluster_href: cluster!.href.replace('/orgs/1', '/orgs/2') }, 'invalid_href')
    await bench.fails(NAME, { max_results: 10_001 }, 'invalid_argument')
    t.notOk(
      simulator.requests.some(({ path }) => path.endsWith(LIST)),
      'no workload was asked for',
    )
  })

  await t.test('the cluster filter covers everything, not just the first 500', async (t) => {
    const estate = estateWith((inventory) => {
      const [sample] = inventory[LIST]!
      const last = inventory.container_clusters!.at(-1)!
      const many = Array.from({ length: 700 }, (_, n) => ({
        ...sample!,
        href: `/orgs/1/kubernetes_workloads/00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
        name: `pod\u202E-${n}`,
        container_cluster: { href: n >= 690 ? last.href : (sample!.container_cluster as { href: string }).href },
      }))
      return { ...inventory, [LIST]: many }
    })
    const large = await startBench(t, { estate })
    const found = await large.ok(NAME, { cluster_href: other!.href, max_results: 4 })
    partial(t, found, { total_count: 10, truncated: true })
    t.equal(found[LIST].length, 4)
    t.equal(found[LIST][0].name, 'pod⟨U+202E⟩-690')
    t.equal((await follow(large, NAME, { cluster_href: other!.href, max_results: 4 }, LIST)).length, 10)

    const whole = await follow(large, NAME, {}, LIST)
    t.equal(new Set(hrefsOf(whole)).size, 700, 'every one once')
    const first = await large.ok(NAME)
    partial(t, first, { total_count: 700, pce_total: 700, truncated: true, next_cursor: /./ })
    t.ok(JSON.stringify(first).length <= 80_000)
    const roomy = await startBench(t, { estate, budget: 800_000 })
    t.equal((await roomy.ok(NAME))[LIST].length, 25, 'unless more is asked for')
    t.equal((await roomy.ok(NAME, { max_results: 600 }))[LIST].length, 600)
  })

  await t.test('works with a PCE that ignores the cluster filter and names labels by href only', async (t) => {
    const workloads = everything.map((one, index) => ({
      ...one,
      labels: [{ href: '/orgs/1/labels/1' }],
      container_cluster: index === 0 ? { href: other!.href, name: 'two' } : undefined,
    }))
    const server = await startServer(t, ({ path }): Reply => {
      if (path.includes('container_clusters/')) return { body: other }
      const body = path.startsWith('/orgs/1/labels')
        ? [{ href: '/orgs/1/labels/1', key: 'app', value: 'x' }]
        : workloads
      return { body, headers: { 'x-total-count': String(body.length) } }
    })
    const scripted = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
    const answer = await scripted.ok(NAME, { cluster_href: other!.href })
    partial(t, answer, { total_count: 1, pce_total: workloads.length, truncated: false })
    t.same(answer[LIST][0].labels, ['app=x'])
    const sent = new URL(
      server
        .requests()
        .find((request) => request.includes(LIST))!
        .slice(4),
      'http://x',
    )
    t.same(JSON.parse(sent.searchParams.get('container_clusters')!), [other!.href])
  })
})

type Inventory = NonNullable<Estate['inventory']>

/** The generated estate with another inventory. */
function estateWith(change: (inventory: Inventory) => Inventory): Estate {
  const estate = generateEstate({ seed: 3, workloads: 120, flows: 0, orgId: 1 })
  return { ...estate, inventory: change(estate.inventory!) }
}

/** As above, with changed clusters; null takes one away. */
function withClusters(change: (cluster: Json, index: number) => Json): Estate {
  return estateWith((inventory) => {
    const clusters = inventory.container_clusters!.map(change).filter((cluster) => cluster !== null)
    return { ...inventory, container_clusters: clusters }
  })
}
