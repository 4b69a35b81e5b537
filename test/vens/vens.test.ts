/** get-vens and ven-health-report over a small fleet in which everything that can be wrong with a VEN is wrong with one. */
import t from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import { REALITIES } from '../../pce-simulator/options.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Json } from '../tools/harness.js'

const NEWEST = '25.2.10-101'
const HEARD = '2026-06-15T11:58:00.000Z'

interface Machine extends HandMadeHost {
  status?: string
  type?: string
  version?: string
  sync?: string
  heard?: string
  health?: { type: string; severity: string }[]
}

const PROD = 'app=pay env=prod'
const MACHINES: Record<string, Machine> = {
  'pay-1': { ip: '10.0.0.1', labels: PROD, mode: 'full' },
  'pay-2': { ip: '10.0.0.2', labels: PROD, mode: 'full', online: false, heard: '2026-06-12T11:00:00.000Z' },
  'pay-3': { ip: '10.0.0.3', labels: PROD, mode: 'selective', sync: 'staged' },
  'pay-4': { ip: '10.0.0.4', labels: PROD, mode: 'full', status: 'suspended' },
  'pay-5': {
    ip: '10.0.0.5',
    labels: PROD,
    mode: 'full',
    version: '24.5.0-72',
    health: [
      { type: 'agent.tampering', severity: 'error' },
      { type: 'agent.brand_new_trouble', severity: 'warning' },
    ],
  },
  'dev-1': { ip: '10.0.1.1', labels: 'app=pay env=dev', version: '25.2.9-300', os: 'win-x86_64-server' },
  'dev-2': { ip: '10.0.1.2', labels: 'app=pay env=dev', mode: 'idle', status: 'stopped', online: false },
  'LT-1': {
    ip: '10.0.2.1',
    type: 'endpoint',
    version: '25.2.20-118',
    online: false,
    heard: '2026-06-15T09:00:00.000Z',
  },
  printer: { ip: '10.0.9.9', managed: false },
}

function fleet(): Estate {
  const estate = handMade({ hosts: MACHINES })
  const workloads = estate.workloads.map((workload) => {
    const {
      status = 'active',
      type = 'server',
      version = NEWEST,
      sync = 'applied',
      heard = HEARD,
      health = [],
    } = MACHINES[workload.name as string]!
    if (workload.managed !== true) return workload
    const isSeenOutside = workload.name === 'dev-1'
    const told = {
      agent_version: version,
      security_policy_sync_state: sync,
      last_heartbeat_on: heard,
      agent_health: health,
    }
    return {
      ...workload,
      ...(isSeenOutside && { public_ip: '198.51.100.9' }),
      ven: { ...workload.ven!, status, ven_type: type },
      agent: { config: {}, status: told },
    }
  })
  return { ...estate, workloads }
}

const vensOf = ({ vens }: Json): string[] => vens.map(({ hostname }: Json) => hostname)

for (const reality of REALITIES)
  t.test(`${reality}: the report on a fleet: who enforces, what is wrong with whom, and what that means`, async (t) => {
    const bench = await startBench(t, { estate: fleet(), reality })
    const report = await bench.ok('ven-health-report')
    const row = (
      name: string,
      why: string,
      mode: string,
      heard = HEARD,
      [app, env]: (string | null)[] = ['pay', 'prod'],
    ) => {
      const href = `/orgs/1/vens/00000000-0000-4000-8000-00000000000${Object.keys(MACHINES).indexOf(name) + 1}`
      return { name, workload_name: name, href, app, env, enforcement_mode: mode, last_heartbeat_at: heard, why }
    }
    t.same(report, {
      summary:
        '8 VENs: 5 in selective or full mode, 2 (25 %) online and enforcing the newest policy; 2 suspended or stopped, 2 offline, 1 in error, 1 without the newest policy, 2 out of date.',
      meaning: [
        '1 VEN suspended (1 in selective or full mode): nothing is enforced there: the firewall rules are removed and all traffic passes.',
        '1 VEN stopped or uninstalled: no change reaches them and no traffic is reported; whether rules still stand on the hosts is not known here.',
        '2 VENs offline (1 in selective or full mode): where the host is up, it goes on enforcing the policy it received last and learns of no change; its addresses are out of the policy of others, so those in full enforcement refuse it where rules name labels.',
        '1 VEN without the newest policy (1 in selective or full mode): they enforce an older one until they have applied it; staged waits for somebody to apply it.',
        '1 VEN in error (1 in selective or full mode): until that is fixed, what they enforce may differ from the policy.',
        '2 VENs out of date (1 in selective or full mode): they enforce as before, but without the features and fixes of later releases.',
        '1 VEN in idle: no policy is applied there and nothing is blocked; traffic is reported in part only, as snapshots of ten minutes with the decision unknown.',
        '2 VENs in visibility_only: traffic is reported, nothing is blocked.',
      ],
      total: 8,
      enforcing: 2,
      enforcing_not_known: 0,
      not_running_total: 2,
      offline_total: 2,
      in_error_total: 1,
      unsynced_total: 1,
      warned_total: 0,
      out_of_date_total: 2,
      not_known_total: 0,
      not_known_by: {},
      by_status: { active: 6, stopped: 1, suspended: 1 },
      by_health: { healthy: 4, warning: 3, error: 1 },
      by_version: { [NEWEST]: 5, '24.5.0-72': 1, '25.2.20-118': 1, '25.2.9-300': 1 },
      by_os: { 'ubuntu-x86_64-jammy': 7, 'win-x86_64-server': 1 },
      by_mode: { full: 4, visibility_only: 2, idle: 1, selective: 1 },
      by_type: { server: 7, endpoint: 1 },
      conditions: [
        { condition: 'agent.missed_heartbeats', means: 'no heartbeats arrive from it', vens: 3 },
        { condition: 'agent.brand_new_trouble', means: 'brand new trouble', vens: 1 },
        { condition: 'agent.tampering', means: 'the firewall of the host was changed behind it', vens: 1 },
      ],
      reference: { from: 'default release', versions: { endpoint: NEWEST, server: NEWEST } },
      not_running: [row('pay-4', 'suspended', 'full'), row('dev-2', 'stopped', 'idle', HEARD, ['pay', 'dev'])],
      offline: [
        row('pay-2', 'no heartbeat for 3 d', 'full', '2026-06-12T11:00:00.000Z'),
        row('LT-1', 'no heartbeat for 3 h', 'visibility_only', '2026-06-15T09:00:00.000Z', [null, null]),
      ],
      in_error: [
        row(
          'pay-5',
          'the firewall of the host was changed behind it; brand new trouble; 24.5.0-72, not 25.2.10-101',
          'full',
        ),
      ],
      unsynced: [row('pay-3', 'policy staged', 'selective')],
      warned: [],
      out_of_date: [row('dev-1', '25.2.9-300, not 25.2.10-101', 'visibility_only', HEARD, ['pay', 'dev'])],
      not_known: [],
    })

    const dev = await bench.ok('ven-health-report', { labels: ['env=dev'] })
    t.equal(
      dev.summary,
      '2 VENs: 0 in selective or full mode, 0 (0 %) online and enforcing the newest policy; 1 suspended or stopped, 1 out of date.',
    )
    t.equal((await bench.ok('ven-health-report', { labels: ['env=dev', 'app=pay'] })).total, 2)
  })

t.test('what versions are held against where the PCE has no default, or does not say', async (t) => {
  const bench = await startBench(t, { estate: fleet() })
  const path = '/orgs/1/software/ven/releases'
  const answer = (body: unknown, status = 200) =>
    bench.simulator.faults.add({ kind: 'status', path, times: 1, status, body })
  const release = (name: string) => ({ href: `${path}/${name}`, release: name, default: false })
  answer([release('25.2.9-400'), release('25.2.20-118'), release('24.5.0-72')])
  const newest = await bench.ok('ven-health-report')
  t.same(newest.reference, { from: 'newest release', versions: { endpoint: '25.2.20-118', server: '25.2.20-118' } })
  t.equal(newest.out_of_date_total, 7)

  answer([{ token: 'forbidden_error', message: 'no' }], 403)
  const unread = await bench.ok('ven-health-report')
  t.equal(unread.reference.from, 'newest VEN')
  t.equal(unread.out_of_date_total, 7)
  t.equal(unread.warnings.length, 1)
  t.match(unread.warnings[0], /could not be read, so versions are held against the newest VEN/)

  answer([{ ...release('25.2.20-118'), default: true, default_release_ven_types: ['server'] }])
  const servers = await bench.ok('ven-health-report')
  t.same(servers.reference.versions, { server: '25.2.20-118' }, 'a type without a default is held against nothing')
  t.equal(servers.out_of_date_total, 7)
})

t.test('lists of the report are cut, and say so; the totals are not', async (t) => {
  const bench = await startBench(t, { workloads: 200, flows: 0 })
  const short = await bench.ok('ven-health-report')
  t.equal(short.out_of_date.length, 5)
  t.ok(short.out_of_date_total > 5)
  t.ok(short.truncated_sections.includes('out_of_date'))
  const full = await bench.ok('ven-health-report', { detail_level: 'full', sections: ['out_of_date'] })
  t.equal(full.out_of_date.length, short.out_of_date_total)
})

t.test(
  'the report on a list that begins anew, that is not whole, or of which the PCE filters a part alone',
  async (t) => {
    const bench = await startBench(t, { estate: fleet() })
    const scan = bench.pce.vens.scan.bind(bench.pce.vens)
    bench.pce.vens.scan = async (...args) => {
      await scan(...args)
      return { ...(await scan(...args)), isWhole: false }
    }
    const { total, warnings } = await bench.ok('ven-health-report')
    t.same(
      [total, warnings],
      [8, ['The PCE did not give the whole list of VENs: all counts are lower bounds.']],
      'each is counted once',
    )

    bench.pce.vens.scan = scan
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, n) => bench.pce.labels.create({ key: 'env', value: `e${n}` })),
    )
    const dev = (await bench.pce.labels.getAll()).find(({ key, value }) => key === 'env' && value === 'dev')
    const members = [dev!, ...made].map(({ href }) => ({ href }))
    await bench.pce.labelGroups.create({ name: 'wide', key: 'env', labels: members })
    const labels = ['labelgroup:wide', 'app=pay']
    t.equal((await bench.ok('ven-health-report', { labels })).total, 2)
    t.same(vensOf(await bench.ok('get-vens', { labels })).toSorted(), ['dev-1', 'dev-2'])
  },
)

for (const reality of REALITIES)
  t.test(`${reality}: get-vens: each filter, and what a row says`, async (t) => {
    const bench = await startBench(t, { estate: fleet(), reality })
    const all = Object.keys(MACHINES).filter((name) => name !== 'printer')
    for (const [args, found] of [
      [{}, all],
      [{ hostname: 'pay' }, ['pay-1', 'pay-2', 'pay-3', 'pay-4', 'pay-5']],
      [{ hostname: 'pay', exact: true }, []],
      [{ hostname: 'pay-3', exact: true }, ['pay-3']],
      [{ ip_address: '10.0.1.' }, ['dev-1', 'dev-2']],
      [{ ip_address: '10.0.1.1', exact: true }, ['dev-1']],
      [{ ip_address: '198.51.100.9', exact: true }, ['dev-1']],
      [{ os: 'win' }, ['dev-1']],
      [{ status: 'suspended' }, ['pay-4']],
      [{ health: 'error' }, ['pay-5']],
      [{ health: 'unhealthy' }, ['pay-2', 'pay-5', 'dev-2', 'LT-1']],
      [{ condition: 'agent.missed_heartbeats' }, ['pay-2', 'dev-2', 'LT-1']],
      [{ ven_type: 'endpoint' }, ['LT-1']],
      [{ labels: ['env=dev'] }, ['dev-1', 'dev-2']],
      [{ labels: 'env=dev', status: 'stopped' }, ['dev-2']],
      [{ version_lte: '25.2.9-999' }, ['pay-5', 'dev-1']],
      [{ version_gte: '25.2.20-1' }, ['LT-1']],
      [{ version_lte: '24.5' }, ['pay-5']],
      [{ version_lte: '24.5.0' }, ['pay-5']],
      [{ version_lte: '25.2.9' }, ['pay-5', 'dev-1']],
      [{ version_lte: '25.2.10' }, all.filter((name) => name !== 'LT-1')],
      [{ version_lte: '24.4' }, []],
      [{ version_gte: '25.2', version_lte: '25.2.9' }, ['dev-1']],
      [{ online: false }, ['pay-2', 'dev-2', 'LT-1']],
      [{ online: false, status: 'active' }, ['pay-2', 'LT-1']],
      [{ enforcement_mode: 'selective' }, ['pay-3']],
      [{ enforcement_mode: 'full', online: true }, ['pay-1', 'pay-4', 'pay-5']],
      [{ policy_sync: 'not_applied' }, ['pay-3']],
      [{ policy_sync: 'syncing' }, []],
      [{ condition: 'agent.tampering' }, ['pay-5']],
      [{ online: true, labels: 'env=dev' }, ['dev-1']],
      [{ last_heartbeat_lte: '2026-06-14' }, ['pay-2']],
      [{ last_heartbeat_lte: '2026-06-12' }, ['pay-2']],
      [{ last_heartbeat_gte: '2026-06-15T10:00:00Z', status: 'suspended' }, ['pay-4']],
      [{ disconnected_before: '2026-06-15T10:00:00Z' }, ['pay-2', 'LT-1']],
      [{ upgrade_pending: true }, []],
      [{ authentication_recovery: false, hostname: 'dev' }, ['dev-1', 'dev-2']],
    ] as const) {
      const answer = await bench.ok('get-vens', args)
      t.same(vensOf(answer), found, JSON.stringify(args))
      t.equal(answer.total_count, found.length)
      t.equal(answer.message, found.length === 0 ? 'No VEN matches.' : undefined)
    }

    const hint = 'which consoles show where a name is unset.'
    for (const [args, said] of [
      [{ name: 'pay' }, `No VEN matches. 5 match by hostname, ${hint}`],
      [{ name: 'pay', labels: 'env=dev' }, 'No VEN matches.'],
      [{ name: 'dev-1', exact: true }, `No VEN matches. At most 1 matches by hostname, ${hint}`],
      [{ name: 'pay', hostname: 'dev' }, 'No VEN matches.'],
    ] as const) {
      bench.simulator.clearRequests()
      t.equal((await bench.ok('get-vens', args)).message, said)
      const asked = bench.simulator.requests.filter(({ path }) => path.includes('/vens'))
      t.equal(asked.length, 'hostname' in args ? 1 : 2, 'one request more')
    }

    const [pay5] = (await bench.ok('get-vens', { hostname: 'pay-5' })).vens
    t.same(pay5, {
      href: '/orgs/1/vens/00000000-0000-4000-8000-000000000005',
      name: null,
      hostname: 'pay-5',
      status: 'active',
      workload_name: 'pay-5',
      health: 'error',
      conditions: [
        {
          condition: 'agent.tampering',
          means: 'the firewall of the host was changed behind it',
          severity: 'error',
          since: HEARD,
        },
        { condition: 'agent.brand_new_trouble', means: 'brand new trouble', severity: 'warning', since: HEARD },
      ],
      online: true,
      last_heartbeat_at: HEARD,
      version: '24.5.0-72',
      os: 'ubuntu-x86_64-jammy',
      enforcement_mode: 'full',
      policy_sync: 'applied',
      policy_received_at: null,
      policy_applied_at: null,
      ip_addresses: ['10.0.0.5'],
      labels: ['app=pay', 'env=prod'],
      ven_type: 'server',
      workload_href: '/orgs/1/workloads/00000000-0000-4000-8000-000000000005',
    })

    const pages: string[] = []
    let cursor: string | undefined
    do {
      const page: Json = await bench.ok('get-vens', { max_results: 3, fields: ['hostname'], cursor })
      pages.push(vensOf(page).join(' '))
      cursor = page.next_cursor
    } while (cursor !== undefined)
    t.same(pages, ['pay-1 pay-2 pay-3', 'pay-4 pay-5 dev-1', 'dev-2 LT-1'])
  })

t.test('get-vens: what cannot be meant is refused, and never widens the answer', async (t) => {
  const bench = await startBench(t, { estate: fleet() })
  partial(t, await bench.fails('get-vens', { labels: ['env=porduction'] }, 'unresolved_label_filter'), {})
  partial(t, await bench.fails('get-vens', { last_heartbeat_gte: 'yesterday' }, 'invalid_argument'), {
    argument: 'last_heartbeat_gte',
  })
  await bench.fails('get-vens', { container_cluster: 'no-such' }, 'not_found')
  for (const argument of ['version_gte', 'version_lte']) {
    for (const text of ['', ' ', 'newest', '25.2.x', '25.2.10-'])
      partial(t, await bench.fails('get-vens', { [argument]: text }, 'invalid_argument'), { argument })
    t.ok(await bench.ok('get-vens', { [argument]: '25.2' }))
  }
  const { message } = await bench.fails('get-vens', { version_gte: 'newest' }, 'invalid_argument')
  t.equal(message, 'version_gte "newest" is not a release such as 25.2.10-101 or 25.2.')
  t.match((await bench.ok('get-vens', { condition: 'offline' })).message, /agent\.missed_heartbeats/)
  const sent = bench.simulator.requests.filter(({ method }) => method !== 'GET')
  t.same(sent, [])
})

t.test('a VEN that is online and silent for days is remarked on, once', async (t) => {
  const estate = fleet()
  const silent = (name: unknown) => name === 'pay-1' || name === 'pay-2' || name === 'pay-4'
  const workloads = estate.workloads.map((workload) => {
    if (!silent(workload.name)) return workload
    const { agent } = workload as Json
    return {
      ...workload,
      agent: { ...agent, status: { ...agent.status, last_heartbeat_on: '2026-06-13T12:00:00.000Z' } },
    }
  })
  const bench = await startBench(t, { estate: { ...estate, workloads } })
  // Not of pay-2, which is offline, nor of pay-4, which is suspended.
  const said = [
    '1 VEN counted online by the PCE has sent no heartbeat for more than a day: status and heartbeat disagree.',
  ]
  t.same((await bench.ok('get-vens')).warnings, said)
  t.equal((await bench.ok('get-vens', { hostname: 'dev' })).warnings, undefined)
  t.same((await bench.ok('ven-health-report')).warnings, said)

  const drawn = await startBench(t, { workloads: 40, flows: 0 })
  t.equal((await drawn.ok('ven-health-report')).warnings, undefined, 'the drawn estate agrees with itself')
})

t.test('the report shows the lists that were asked for, and counts all', async (t) => {
  const bench = await startBench(t, { workloads: 200, flows: 0 })
  const all = await bench.ok('ven-health-report', { detail_level: 'full' })
  const { offline, ...rest } = await bench.ok('ven-health-report', { detail_level: 'full', sections: ['offline'] })
  t.same(offline, all.offline)
  for (const list of ['not_running', 'in_error', 'unsynced', 'out_of_date']) t.notOk(list in rest, list)
  t.equal(rest.out_of_date_total, all.out_of_date_total)
  await bench.fails('ven-health-report', { sections: ['asleep'] }, 'invalid_argument')
})

t.test('get-vens: the nodes of a cluster, by its exact name', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const [cluster]: Json[] = await bench.pce.containerClusters.getAll()
  const workloads: Json[] = await bench.pce.workloads.getAll()
  const nodes = workloads.filter((one) => one.container_cluster?.href === cluster.href && one.managed === true)
  const found = await bench.ok('get-vens', { container_cluster: cluster.name })
  t.same(vensOf(found).sort(), nodes.map(({ hostname }) => hostname).sort())
})
