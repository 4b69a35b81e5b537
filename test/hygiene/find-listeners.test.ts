/** find-listeners on an estate made by hand: what listens, who talked to it, and what silence does not prove. */
import t, { type Test } from 'tap'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type BenchOptions, type Json } from '../tools/harness.js'

const LISTS = ['0.0.0.0 443 nginx', '0.0.0.0 22 sshd', '127.0.0.1 9000 php-fpm', ':: 443 nginx', '0.0.0.0 161/17 snmpd']
const NEW = '2026-06-15T06:00:00.000Z'

/** Changes what a workload is beside its ports. */
type Change = Record<string, unknown>

/** Hosts whose names begin with `web` are of app=shop; all of them listen to the same, and each is changed as told. */
async function start(
  t: Test,
  hosts: Record<string, Change>,
  flows: [from: string, to: string, port: number][],
  options: Pick<BenchOptions, 'trafficRows'> = {},
) {
  const names = Object.keys(hosts)
  const estate = handMade({
    hosts: {
      client: { ip: '10.0.9.9', labels: 'app=other' },
      ...Object.fromEntries(names.map((name, at) => [name, { ip: `10.0.0.${at + 1}`, labels: 'app=shop env=prod' }])),
    },
    flows: flows.map(([from, to, port]) => ({ from, to, port, connections: 3, daysAgo: 4 })),
  })
  for (const one of estate.workloads) {
    const change = hosts[one.name ?? '']
    if (change === undefined) continue
    const ports = LISTS.map((text) => {
      const [address, place = '', process] = text.split(' ')
      const [port, protocol = 6] = place.split('/').map(Number)
      return { address, port, protocol, process_name: `/usr/sbin/${process}`, user: 'root', package: null }
    })
    Object.assign(one, { services: { created_at: NEW, open_service_ports: ports } }, change)
  }
  return startBench(t, { estate, ...options })
}

const SHOP = { labels: ['app=shop'] }
const brief = ({ listeners }: Json) =>
  listeners.map(({ port, proto, process, use, workloads, silent = 0, not_known: unsure = 0, connections }: Json) =>
    [`${port}/${proto}`, process.split('/').at(-1), use, workloads, silent, unsure, connections].join(' '),
  )

t.test('listeners by port and process over all workloads, those that nobody talked to first', async (t) => {
  const bench = await start(t, { 'web-1': {}, 'web-2': {} }, [
    ['client', 'web-1', 443],
    ['web-1', 'web-2', 443],
    ['client', 'web-1', 22],
    ['client', 'web-1', 9000],
  ])
  const answer = await bench.ok('find-listeners', SHOP)
  t.same(brief(answer), ['161/udp snmpd unused 2 2 0 0', '22/tcp sshd used 2 1 0 3', '443/tcp nginx used 2 0 0 6'])
  const ssh = answer.listeners.find(({ port }: Json) => port === 22)
  t.same([ssh.silent_on, ssh.users, ssh.last_seen.slice(0, 10)], [['web-2'], ['root'], '2026-06-11'])
  t.equal(answer.listeners[0].last_seen, null)
  t.same(answer.workloads, { matched: 2, unmanaged: 0, left: 0, unreported: 0, unread: 0, examined: 2 })
  t.same([answer.local_only, answer.listeners_total, answer.counts], [2, 3, { unused: 1, not_known: 0, used: 2 }])
  t.equal(answer.summary, '3 listeners on 2 workloads; nobody talked to 1 of them in the last 30 days.')
  t.notOk('doubts' in answer)

  t.same(brief(await bench.ok('find-listeners', { ...SHOP, use: 'unused' })), ['161/udp snmpd unused 2 2 0 0'])
  t.same(brief(await bench.ok('find-listeners', { ...SHOP, port: 22 })), ['22/tcp sshd used 2 1 0 3'])
  t.same(brief(await bench.ok('find-listeners', { ...SHOP, process: 'NGINX' })), ['443/tcp nginx used 2 0 0 6'])
  t.same(brief(await bench.ok('find-listeners', { ...SHOP, process: 'nginx', exact: true })), [])
  const path = { process: '/usr/sbin/nginx', exact: true }
  t.same(brief(await bench.ok('find-listeners', { ...SHOP, ...path })), ['443/tcp nginx used 2 0 0 6'])
  const { counts } = await bench.ok('find-listeners', { ...SHOP, lookback_days: 2 })
  t.same(counts, { unused: 3, not_known: 0, used: 0 }, 'in a shorter window')
  const first = await bench.ok('find-listeners', { ...SHOP, max_results: 2 })
  const second = await bench.ok('find-listeners', { ...SHOP, max_results: 2, cursor: first.next_cursor })
  t.same([...brief(first), ...brief(second)], brief(answer))
  t.same([first.truncated, second.truncated, 'next_cursor' in second], [true, false, false])
})

t.test('where silence proves nothing, nothing is called unused', async (t) => {
  const cases: [doubt: string, change: Change][] = [
    ['offline', { online: false }],
    ['offline', { ven: { href: '/orgs/1/vens/x', status: 'suspended' } }],
    ['idle', { enforcement_mode: 'idle' }],
    ['visibility_off', { visibility_level: 'flow_off' }],
    ['paired_later', { agent: { status: { managed_since: '2026-06-10T00:00:00Z', status: 'active' } } }],
  ]
  for (const [doubt, change] of cases) {
    const bench = await start(t, { 'web-1': {}, 'web-2': change }, [
      ['client', 'web-1', 443],
      ['client', 'web-2', 22],
    ])
    const answer = await bench.ok('find-listeners', SHOP)
    t.same(
      brief(answer).sort(),
      ['161/udp snmpd not_known 2 1 1 0', '22/tcp sshd used 2 1 0 3', '443/tcp nginx used 2 0 1 3'],
      doubt,
    )
    t.same(answer.doubts, { [doubt]: 1 }, JSON.stringify(change))
    const unsure = await bench.ok('find-listeners', { ...SHOP, use: 'not_known' })
    t.same(
      unsure.listeners.map(({ port, not_known_on: on }: Json) => [port, on]),
      [
        [161, ['web-2']],
        [443, ['web-2']],
      ],
      'also what is used elsewhere',
    )
  }
  const ports = (created_at: string | null) => ({
    services: { created_at, open_service_ports: [{ address: null, port: 80, protocol: 6, process_name: '/a/httpd' }] },
  })
  const old = await start(t, { 'web-1': ports('2026-06-01T00:00:00Z'), 'web-2': ports(null), 'web-3': ports(NEW) }, [])
  const answer = await old.ok('find-listeners', SHOP)
  t.same([brief(answer), answer.doubts], [['80/tcp httpd not_known 3 1 2 0'], { old_report: 2 }])
  t.ok(
    answer.warnings.includes(
      'Of the workloads that were examined: 2 reported their ports more than 7 days ago, or at an unknown time (old_report).',
    ),
    answer.warnings,
  )
})

t.test('where nothing listens, nothing is said of who talked to it', async (t) => {
  const bench = await start(t, { 'web-1': { services: { created_at: NEW, open_service_ports: [] } } }, [
    ['client', 'web-1', 443],
  ])
  const answer = await bench.ok('find-listeners', SHOP)
  t.equal(
    answer.summary,
    'No listener that matches on 1 workload that reported listeners, so nothing was asked about traffic.',
  )
  t.same([answer.listeners, answer.counts, answer.window], [[], { unused: 0, not_known: 0, used: 0 }, undefined])
})

t.test('where traffic was cut, silence is not known', async (t) => {
  const flows: [string, string, number][] = [
    ['client', 'web-1', 443],
    ['client', 'web-2', 443],
    ['client', 'web-1', 22],
  ]
  const answer = await (
    await start(t, { 'web-1': {}, 'web-2': {} }, flows, { trafficRows: 1 })
  ).ok('find-listeners', SHOP)
  t.equal(answer.flows_truncated, true)
  t.same([answer.counts.unused, answer.counts.not_known > 0], [0, true])
  t.same(
    answer.listeners.filter(({ silent }: Json) => silent !== undefined),
    [],
  )
  t.match(answer.summary, /; nobody talked to 0 of them in the last 30 days, and of \d that is not known\.$/)
  t.same(answer.warnings, ['Not all of their traffic was read, so that nothing is called unused.'])
})

t.test('a window without any traffic is told from one in which nobody talked to a listener', async (t) => {
  const bench = await start(t, { 'web-1': {} }, [['client', 'web-1', 443]])
  const { warnings } = await bench.ok('find-listeners', { ...SHOP, lookback_days: 2 })
  t.same(warnings, [
    'No traffic to any of these ports is in the window. If the PCE keeps none that old, silence proves nothing.',
  ])
  t.notOk('warnings' in (await bench.ok('find-listeners', SHOP)))
})

t.test('ports that a list leaves out are read workload by workload, and what is not known is counted', async (t) => {
  const bench = await start(
    t,
    { 'web-1': {}, 'web-2': {}, 'web-3': { services: null }, 'web-4': { managed: false, ven: null }, 'web-5': {} },
    [['client', 'web-1', 443]],
  )
  leaveOutPorts(bench)
  const read = bench.pce.workloads.getByReference.bind(bench.pce.workloads)
  let reads = 0
  bench.pce.workloads.getByReference = async (href, options) => {
    reads += 1
    return read(href, options)
  }
  const gone = (bench.simulator.state.find('/orgs/1/workloads') as Json).find(({ name }: Json) => name === 'web-5')
  bench.simulator.faults.add({ kind: 'status', status: 404, method: 'GET', path: gone.href, times: 1 } as Json)
  const answer = await bench.ok('find-listeners', SHOP)
  t.same(answer.workloads, { matched: 5, unmanaged: 1, left: 0, unreported: 1, unread: 1, examined: 2 })
  t.equal(reads, 4, 'one for each with a VEN')
  t.same(answer.warnings, ['1 workload reported no listeners.', '1 workload could not be read.'])
  t.same(brief(answer).sort(), [
    '161/udp snmpd unused 2 2 0 0',
    '22/tcp sshd unused 2 2 0 0',
    '443/tcp nginx used 2 1 0 3',
  ])
})

/** As a PCE does it (P128). */
function leaveOutPorts({ pce }: Bench): void {
  const scan = pce.workloads.scan.bind(pce.workloads)
  pce.workloads.scan = (version, parent, options) =>
    scan(version, parent, {
      ...options,
      onItems: (items) => options.onItems(items.map(({ services: _ports, ...one }) => one)),
    })
}

t.test('more workloads than a call looks at are counted, and an unknown label is refused', async (t) => {
  const bench = await start(t, Object.fromEntries(Array.from({ length: 203 }, (_, at) => [`web-${at}`, {}])), [])
  const { workloads, warnings } = await bench.ok('find-listeners', SHOP)
  t.same([workloads.matched, workloads.examined, workloads.left], [203, 200, 3])
  t.equal(warnings[0], '3 workloads beyond 200 were not looked at: narrow the selection.')
  const all = await bench.ok('find-listeners', { port: 22 })
  // The client is one of the first 200, and has no report.
  t.same(all.workloads, { matched: 204, unmanaged: 0, left: 4, unreported: 1, unread: 0, examined: 199 })
  await bench.fails('find-listeners', { labels: ['app=nowhere'] }, 'unresolved_label_filter')
})
