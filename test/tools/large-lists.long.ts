/**
 * Lists of a large estate, by the program as its clients start it: every list tool answers, in memory that does not grow with the
 * estate, and a page without a filter costs one request for its collection (for workloads also the count of pods), and one for each kind
 * that its rows name (D132).
 */
import t, { type Test } from 'tap'
import { MODES, type LargeSize } from './large-estate.js'
import { serveLargeEstate, type ServedEstate } from './serve-large-estate.js'
import { bundleProgram } from '../bundle-program.js'
import type { Json } from './harness.js'

/** What a large estate may cost above a small one: MiB. */
const MOST_ABOVE = 150
const LARGE = { workloads: 100_000, events: 50_000, ipLists: 15_000, services: 9000 }
const SMALL = { workloads: 200, events: 100, ipLists: 15, services: 9 }

/** Every list tool with what makes it read most, and what it has to answer for an estate of that size. */
async function askEverything(t: Test, { call }: ServedEstate, size: LargeSize): Promise<void> {
  const { workloads, events, ipLists, services } = size
  const reach = Math.min(events, 10_000)
  const nobody = await call('get-workloads', { ip_address: '2001:db8::ffff:1', exact: true, max_results: 10 })
  t.same([nobody.total, nobody.returned, nobody.pce_total], [0, 0, workloads])
  const one = await call('get-workloads', { ip_address: `2001:DB8::${(99).toString(16)}`, exact: true })
  t.same([one.total, one.data[0][1]], [1, 'host-99'])
  const managed = await call('get-workloads', { managed: true, labels: 'app=payments', max_results: 10 })
  // Of twenty in a row, two are unmanaged and five are of ordering; one is both.
  t.same([managed.total, managed.returned], [(workloads / 20) * 14, 10])

  const status = await call('get-workload-enforcement-status')
  t.equal(status.total_workloads, workloads)
  t.same(status.global_enforcement_modes, Object.fromEntries(MODES.map((mode) => [mode, workloads / 4])))
  t.equal(status.managed_only.total, workloads * 0.9)
  t.same(
    status.app_groups.map(({ app, workload_count: count }: Json) => [app, count]),
    [
      ['ordering', workloads / 4],
      ['payments', (workloads / 4) * 3],
    ],
  )

  const rare = await call('get-events', { created_by: 'rare@example.com', max_results: 5 })
  t.same([rare.total_count, rare.events.length, rare.pce_total], [reach / 100, Math.min(5, reach / 100), events])
  t.equal('note' in rare, events > 10_000)
  const counted = await call('get-events', { counts: true })
  t.same(counted.counts.event_type, { 'user.login': reach / 2, 'workload.update': reach / 2 })
  const logins = await call('get-events', { event_type: 'user.login', max_results: 10 })
  t.equal(logins.total_count, events / 2)

  const exact = { exact: true, max_results: 10 }
  t.equal((await call('get-iplists', { ...exact, description: 'x'.repeat(2800) })).total_count, ipLists)
  t.equal((await call('get-iplists', { ...exact, name: 'list-7' })).ip_lists[0].name, 'list-7')
  t.equal((await call('get-services', { process_name: 'nothing', max_results: 10 })).total_count, 0)
  t.equal((await call('get-services', { port: 5000, max_results: 10 })).total_count, services)
  t.equal((await call('get-rulesets', { enabled: true })).rulesets.length, 1)
  t.equal((await call('get-rulesets', { service: { port: 5432, proto: 'tcp' } })).total_count, 1)
  t.equal((await call('get-rulesets', { actor: 'iplist:list-7' })).total_count, 0)
  t.equal((await call('get-labels', { key: 'app' })).total_count, 2)
  for (const tool of [
    'get-pairing-profiles',
    'get-container-clusters',
    'get-kubernetes-workloads',
    'compare-draft-active',
  ])
    await call(tool, {})
  await call('get-container-workload-profiles', {})
}

t.test('lists of 100,000 workloads, 50,000 events and 15,000 IP lists', async (t) => {
  const serve = async (size: LargeSize) => {
    const served = await serveLargeEstate(bundleProgram('stdio'), size)
    t.teardown(() => served.close())
    return served
  }
  const small = await serve(SMALL)
  await askEverything(t, small, SMALL)
  const before = small.peak()

  const large = await serve(LARGE)
  await t.test('a first page without a filter is one request, and one for each kind that its rows name', async (t) => {
    const cost = async (tool: string, args: Record<string, unknown>) => {
      const answer = await large.call(tool, args)
      return [answer.total ?? answer.total_count, large.requests()]
    }
    const draft = (kind: string) => `sec_policy/draft/${kind}`
    t.same(await cost('get-workloads', {}), [LARGE.workloads, ['workloads', 'kubernetes_workloads']])
    t.same(await cost('get-workloads', { detail_level: 'full', max_results: 10 }), [
      LARGE.workloads,
      ['workloads', 'kubernetes_workloads'],
    ])
    t.same(await cost('get-events', {}), [LARGE.events, ['events']])
    t.same(await cost('get-iplists', {}), [LARGE.ipLists + 1, [draft('ip_lists')]])
    t.same(await cost('get-services', {}), [LARGE.services + 4, [draft('services')]])
    t.same(await cost('get-labels', {}), [6, ['labels']])
    t.same(await cost('get-rulesets', {}), [1, [draft('rule_sets'), 'labels', draft('services')]])
  })

  await askEverything(t, large, LARGE)

  await t.test('pages go on beyond what one answer of the PCE holds', async (t) => {
    const names: string[] = []
    let cursor: string | undefined
    while (names.length < 11_000) {
      const page = await large.call('get-workloads', { fields: ['name'], max_results: 1000, cursor })
      for (const [name] of page.data) names.push(name)
      t.equal(page.total, LARGE.workloads)
      cursor = page.next_cursor
    }
    t.same(
      names,
      names.map((_, at) => `host-${at}`),
    )
  })
  const above = large.peak() - before
  t.comment(`${Math.round(before)} MiB, and ${Math.round(above)} MiB more for the large estate`)
  t.ok(above <= MOST_ABOVE, `${above} MiB above a small estate`)
})
