/**
 * Lists of a large estate, by the program as its clients start it: every list tool answers, in memory that does not grow with the
 * estate, and a page without a filter costs one request for its collection, and one for each kind that its rows name (D132).
 */
import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { createPceSimulator, type Estate } from '../../pce-simulator/index.js'
import { smallEstate } from '../../pce-simulator/small-estate.js'
import { bundleProgram } from '../bundle-program.js'
import type { Json } from './harness.js'

const MIB = 1024
/** What a large estate may cost above a small one: MiB. */
const MOST_ABOVE = 150
const LARGE = { workloads: 200_000, events: 100_000, lists: 15_000, services: 9000 }
const SMALL = { workloads: 200, events: 100, lists: 15, services: 9 }
const START = Date.parse('2026-05-01T00:00:00Z')
/** What a VEN reports of its machine, the same for all: it makes a workload 3 KB. */
const services = {
  uptime_seconds: 100_000,
  created_at: '2026-01-10T09:00:00.000Z',
  open_service_ports: Array.from({ length: 20 }, (_, at) => ({
    protocol: 6,
    address: '0.0.0.0',
    port: 1000 + at,
    process_name: '/usr/sbin/some-daemon',
    user: 'daemon',
    package: null,
    win_service_name: null,
  })),
}
const MODES = ['visibility_only', 'selective', 'full', 'idle'] as const
const id = (n: number) => String(n).padStart(12, '0')

type Size = typeof LARGE

/** Every tenth workload is unmanaged, every fourth is of ordering. */
function estateOf({ workloads, events, lists, services: serviceCount }: Size): Estate {
  const small = smallEstate()
  const [template] = small.workloads
  const [service] = small.services
  const labels = [3, 4].map((app) => [1, app, 5].map((n) => ({ href: `/orgs/1/labels/${n}` })))
  const stamp = { created_at: '2026-01-10T09:00:00.000Z', updated_at: '2026-01-10T09:00:00.000Z' }
  return {
    ...small,
    workloads: Array.from({ length: workloads }, (_, at) => ({
      ...template!,
      href: `/orgs/1/workloads/00000000-0000-4000-8000-${id(at)}`,
      name: `host-${at}`,
      hostname: `host-${at}.example.com`,
      managed: at % 10 !== 0,
      enforcement_mode: MODES[at % 4]!,
      labels: labels[at % 4 === 0 ? 1 : 0]!,
      interfaces: [{ name: 'eth0', address: `2001:db8::${at.toString(16)}` }],
      services,
    })),
    ipLists: Array.from({ length: lists }, (_, at) => ({
      href: `/orgs/1/sec_policy/draft/ip_lists/${at + 10}`,
      name: `list-${at}`,
      description: 'x'.repeat(2800),
      ip_ranges: [{ from_ip: '10.0.0.1' }],
      fqdns: [],
      ...stamp,
    })),
    services: [
      ...small.services,
      ...Array.from({ length: serviceCount }, (_, at) => ({
        ...service!,
        href: `/orgs/1/sec_policy/draft/services/${at + 10}`,
        name: `service-${at}`,
        description: 'x'.repeat(2800),
        service_ports: [{ port: 5000, proto: 6 }],
      })),
    ] as Estate['services'],
    events: Array.from({ length: events }, (_, at) => ({
      href: `/orgs/1/events/00000000-0000-4000-8000-${id(at)}`,
      timestamp: new Date(START + at * 1000).toISOString(),
      pce_fqdn: 'pce.example.com',
      event_type: at % 2 === 0 ? 'workload.update' : 'user.login',
      status: 'success',
      severity: 'info',
      created_by: { user: { href: '/users/1', username: at % 100 === 0 ? 'rare@example.com' : 'admin@example.com' } },
      action: null,
      resource_changes: [],
      notifications: [{ uuid: id(at), notification_type: 'x', info: { text: 'x'.repeat(2600) } }],
    })),
  }
}

/** The program over stdio at an estate, and what its process has needed of memory at most. */
async function serve(t: Test, size: Size) {
  const simulator = await createPceSimulator({
    estate: estateOf(size),
    totalCount: 'all',
    pollsUntilDone: 1,
    retryAfter: 0,
  })
  const url = new URL(await simulator.listen())
  t.teardown(() => simulator.close())
  const client = new Client({ name: 'tester', version: '9' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bundleProgram('stdio')],
    env: {
      PATH: process.env.PATH ?? '',
      PCE_HOST: `http://${url.hostname}`,
      PCE_PORT: url.port,
      API_KEY: simulator.credentials.key,
      API_SECRET: simulator.credentials.secret,
    },
    stderr: 'ignore',
  })
  await client.connect(transport)
  t.teardown(() => client.close())
  const call = async (name: string, args: object = {}): Promise<Json> => {
    simulator.clearRequests()
    const result = await client.callTool({ name, arguments: args as Json }, undefined, { timeout: 120_000 })
    const [content] = result.content as { text: string }[]
    if (result.isError === true) throw new Error(`${name} ${JSON.stringify(args)} failed: ${content!.text}`)
    return JSON.parse(content!.text)
  }
  const requests = () => simulator.requests.map(({ path }) => path.replace('/api/v2/orgs/1/', ''))
  const status = () => readFileSync(`/proc/${transport.pid}/status`, 'utf8')
  const peak = () => Number(/^VmHWM:\s+(\d+) kB/m.exec(status())?.[1]) / MIB
  return { call, requests, peak }
}

type Served = Awaited<ReturnType<typeof serve>>

/** Every list tool with what makes it read most, and what it has to answer for an estate of that size. */
async function askEverything(
  t: Test,
  { call }: Served,
  { workloads, events, lists, services: serviceCount }: Size,
): Promise<void> {
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

  const rare = await call('get-events', { created_by: 'rare@example.com', max_results: 10 })
  t.same([rare.total_count, rare.events.length, rare.pce_total], [reach / 100, Math.min(10, reach / 100), events])
  t.equal('note' in rare, events > 10_000)
  const counted = await call('get-events', { counts: true })
  t.same(counted.counts.event_type, { 'user.login': reach / 2, 'workload.update': reach / 2 })
  const logins = await call('get-events', { event_type: 'user.login', max_results: 10 })
  t.equal(logins.total_count, events / 2)

  const exact = { exact: true, max_results: 10 }
  t.equal((await call('get-iplists', { ...exact, description: 'x'.repeat(2800) })).total_count, lists)
  t.equal((await call('get-iplists', { ...exact, name: 'list-7' })).ip_lists[0].name, 'list-7')
  t.equal((await call('get-services', { process_name: 'nothing', max_results: 10 })).total_count, 0)
  t.equal((await call('get-services', { port: 5000, max_results: 10 })).total_count, serviceCount)
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

t.test('lists of 200,000 workloads, 100,000 events and 15,000 IP lists', async (t) => {
  const small = await serve(t, SMALL)
  await askEverything(t, small, SMALL)
  const before = small.peak()

  const large = await serve(t, LARGE)
  await t.test('a first page without a filter is one request, and one for each kind that its rows name', async (t) => {
    const cost = async (tool: string, args: object) => {
      const answer = await large.call(tool, args)
      return [answer.total ?? answer.total_count, large.requests()]
    }
    const draft = (kind: string) => `sec_policy/draft/${kind}`
    t.same(await cost('get-workloads', {}), [LARGE.workloads, ['workloads']])
    t.same(await cost('get-workloads', { detail_level: 'full', max_results: 10 }), [LARGE.workloads, ['workloads']])
    t.same(await cost('get-events', {}), [LARGE.events, ['events']])
    t.same(await cost('get-iplists', {}), [LARGE.lists + 1, [draft('ip_lists')]])
    t.same(await cost('get-services', {}), [LARGE.services + 4, [draft('services')]])
    t.same(await cost('get-labels', {}), [6, ['labels']])
    t.same(await cost('get-rulesets', {}), [1, [draft('rule_sets'), 'labels', draft('services')]])
  })

  await askEverything(t, large, LARGE)

  await t.test('pages go on beyond what one answer of the PCE holds', async (t) => {
    const names: string[] = []
    let cursor: string | undefined
    while (names.length < 11_000) {
      const page = await large.call('get-workloads', { fields: ['name'], cursor })
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
