/** discover-process-egress: which processes leave the estate, in an estate whose answer is known. */
import t from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createEgressFinder, type Egress, type EgressChoice } from '../../domain/traffic/find-egress.js'
import { showFinding } from '../../tools/answers/traffic/show-egress.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'discover-process-egress'
const ESTATE = handMade({
  hosts: {
    desk: { ip: '10.1.0.1', labels: 'app=desk env=prod' },
    'desk-2': { ip: '10.1.0.2', labels: 'app=desk-2 env=dev', os: 'win-x86_64-server' },
    srv: { ip: '10.1.0.3', labels: 'app=srv env=prod' },
    jail: { ip: '10.1.0.4', labels: 'app=jail env=prod', mode: 'full' },
    open: { ip: '10.1.0.5', labels: 'app=open env=prod', mode: 'selective' },
    nas: { ip: '10.1.0.9', labels: 'app=nas env=prod', managed: false },
    bare: { ip: '10.1.0.10' },
  },
  ipLists: { Partners: ['192.0.2.0/24'], Everyone: ['192.0.0.0/16'] },
  flows: [
    { from: 'desk', to: '160.79.104.10', process: '/usr/bin/python3', user: 'zed', connections: 5, daysAgo: 2 },
    { from: 'desk', to: '160.79.104.10', process: '/usr/bin/python3', user: 'bob', connections: 2 },
    { from: 'desk-2', to: '160.79.104.10', process: 'C:\\Tools\\python3', user: 'zed', connections: 1 },
    { from: 'desk-2', to: '172.66.0.243', fqdn: 'api.vendor.example', process: 'C:\\App\\App.exe', connections: 20 },
    { from: 'desk-2', to: '10.0.0.1', process: 'C:\\App\\App.exe', connections: 7 },
    { from: 'desk', to: 'srv', port: 5432, process: '/usr/bin/psql', connections: 30 },
    { from: 'desk', to: 'nas', port: 445, process: '/usr/sbin/smbd', connections: 4 },
    { from: 'desk', to: '10.0.0.1', port: 53, proto: 17, connections: 50 },
    { from: 'desk', to: '8.8.8.8', proto: 1, process: 'ping', connections: 1 },
    { from: 'desk', to: '2606:4700::1', process: '/usr/bin/curl', connections: 3 },
    { from: 'bare', to: '23.102.140.115', process: '/usr/bin/curl', connections: 9 },
    { from: 'jail', to: '192.0.2.1', process: '/usr/bin/curl', connections: 6 },
    { from: 'open', to: '192.0.2.1', process: '/usr/bin/curl', connections: 8 },
    { from: '198.51.100.1', to: 'srv', process: '/usr/sbin/nginx', connections: 40 },
    { from: '198.51.100.1', to: 'nas', process: '/usr/sbin/smbd', direction: 'inbound', connections: 2 },
    { from: 'desk', to: '198.51.100.9', process: '/usr/bin/old', connections: 99, daysAgo: 20 },
  ],
})

/** A finding in one line, without what the test at hand is not about. */
const line = (row: Json) =>
  [row.process, row.destination, row.port, row.proto, row.policy_decision, row.connections].join(' ')
const FINDINGS = [
  'App.exe api.vendor.example 443 tcp potentially_blocked 20',
  'curl 23.102.140.115 (Any (0.0.0.0/0 and ::/0)) 443 tcp potentially_blocked 9',
  'curl 192.0.2.1 (Partners, Everyone) 443 tcp potentially_blocked 8',
  'python3 160.79.104.10 (Any (0.0.0.0/0 and ::/0)) 443 tcp potentially_blocked 8',
  'App.exe 10.0.0.1 (Any (0.0.0.0/0 and ::/0)) 443 tcp potentially_blocked 7',
  'curl 192.0.2.1 (Partners, Everyone) 443 tcp blocked 6',
  'smbd nas 445 tcp potentially_blocked 4',
  'curl 2606:4700::1 (Any (0.0.0.0/0 and ::/0)) 443 tcp potentially_blocked 3',
  'ping 8.8.8.8 (Any (0.0.0.0/0 and ::/0)) 0 icmp potentially_blocked 1',
]
const PROCESSES = [
  {
    process: 'curl',
    destination_count: 3,
    external_destinations: [
      '192.0.2.1 (Partners, Everyone)',
      '23.102.140.115 (Any (0.0.0.0/0 and ::/0))',
      '2606:4700::1 (Any (0.0.0.0/0 and ::/0))',
    ],
  },
  {
    process: 'App.exe',
    destination_count: 2,
    external_destinations: ['10.0.0.1 (Any (0.0.0.0/0 and ::/0))', 'api.vendor.example'],
  },
  { process: 'ping', destination_count: 1, external_destinations: ['8.8.8.8 (Any (0.0.0.0/0 and ::/0))'] },
  { process: 'python3', destination_count: 1, external_destinations: ['160.79.104.10 (Any (0.0.0.0/0 and ::/0))'] },
  { process: 'smbd', destination_count: 1, external_destinations: ['nas'] },
]
const PROVIDERS = [
  {
    provider: 'cloudflare-fronted',
    provider_confidence: 'ambiguous',
    connections: 23,
    process_count: 2,
    processes: ['App.exe', 'curl'],
    destination_count: 2,
    destinations: ['api.vendor.example', '2606:4700::1 (Any (0.0.0.0/0 and ::/0))'],
  },
  {
    provider: 'anthropic',
    provider_confidence: 'likely',
    connections: 8,
    process_count: 1,
    processes: ['python3'],
    destination_count: 1,
    destinations: ['160.79.104.10 (Any (0.0.0.0/0 and ::/0))'],
  },
  {
    provider: 'azure-hosted',
    provider_confidence: 'ambiguous',
    connections: 9,
    process_count: 1,
    processes: ['curl'],
    destination_count: 1,
    destinations: ['23.102.140.115 (Any (0.0.0.0/0 and ::/0))'],
  },
  {
    provider: 'google-services',
    provider_confidence: 'ambiguous',
    connections: 1,
    process_count: 1,
    processes: ['ping'],
    destination_count: 1,
    destinations: ['8.8.8.8 (Any (0.0.0.0/0 and ::/0))'],
  },
]

/** The query the PCE got last. */
const sent = (bench: Bench): Json =>
  bench.simulator.requests.findLast(({ method, path }) => method === 'POST' && path.endsWith('/async_queries'))!.body

t.test('a fully known estate', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const lines = async (args: object) => (await bench.ok(TOOL, args)).findings.map(line)

  await t.test('findings, rollups and totals', async (t) => {
    const answer = await bench.ok(TOOL)
    t.strictSame(answer.findings.map(line), FINDINGS)
    t.strictSame(answer.processes, PROCESSES)
    t.strictSame(answer.providers, PROVIDERS)
    t.strictSame(answer.totals, {
      pce_flows: 15,
      egress_rows: 11,
      distinct_processes: 5,
      findings: 9,
      returned: 9,
      findings_truncated: false,
      flows_truncated: false,
    })
    t.strictSame(answer.examined, { outbound_rows: 13, with_external_destination: 12, without_process: 1 })
    partial(t, answer, {
      analysed: { pce_flows: 15, rows: 15 },
      flows_truncated: false,
      window: { start: '2026-06-08T00:00:00Z', end: '2026-06-15T23:59:59Z' },
    })
    t.notOk(['message', 'hint', 'coverage_note', 'truncated_sections'].some((name) => name in answer))
  })

  await t.test('a finding sums everything of its process and destination', async (t) => {
    const { findings } = await bench.ok(TOOL)
    t.strictSame(findings[3], {
      process: 'python3',
      destination: '160.79.104.10 (Any (0.0.0.0/0 and ::/0))',
      dst_ip: '160.79.104.10',
      resolved_by_name: false,
      port: 443,
      proto: 'tcp',
      policy_decision: 'potentially_blocked',
      was_permitted: false,
      connections: 8,
      bytes_in: 300,
      bytes_out: 600,
      first_detected: '2026-06-13T01:00:00Z',
      last_detected: '2026-06-14T01:00:00Z',
      process_runs_on: 'source',
      source_hosts: 2,
      user_count: 2,
      users: ['bob', 'zed'],
      likely_provider: 'anthropic',
      provider_confidence: 'likely',
    })
    partial(t, findings[0], { resolved_by_name: true, dst_ip: '172.66.0.243', user_count: 0 })
    t.notOk('users' in findings[0] || 'likely_provider' in findings[4] || 'matched_rule' in findings[0])
    t.strictSame(
      findings.map((row: Json) => row.was_permitted),
      [false, false, false, false, false, false, false, false, false],
    )
  })

  await t.test('names an ambiguous range without attributing the service', async (t) => {
    const { findings, note } = await bench.ok(TOOL)
    partial(t, findings[0], { likely_provider: 'cloudflare-fronted', provider_confidence: 'ambiguous' })
    partial(t, findings[1], { likely_provider: 'azure-hosted', provider_confidence: 'ambiguous' })
    partial(t, findings[7], { likely_provider: 'cloudflare-fronted', provider_confidence: 'ambiguous' })
    t.match(note, /ambiguous that many tenants share it, so who runs the service is unknown/)
    t.notMatch(note, /cloudflare|azure|anthropic/i)
  })

  await t.test('limit trims findings and nothing else', async (t) => {
    const answer = await bench.ok(TOOL, { limit: 2 })
    t.strictSame(answer.findings.map(line), FINDINGS.slice(0, 2))
    t.strictSame(answer.processes, PROCESSES)
    t.strictSame(answer.providers, PROVIDERS)
    partial(t, answer.totals, { findings: 9, returned: 2, findings_truncated: true, distinct_processes: 5 })
    t.strictSame(answer.truncated_sections, ['findings'])
    t.equal(answer.truncation_note, 'At most 2 rows per list are shown; totals count all. Raise limit.')
  })

  await t.test('process: part of the path, any case, whatever the PCE takes for one', async (t) => {
    t.strictSame(await lines({ process: ['PYTHON', ' app.EXE '] }), [FINDINGS[0], FINDINGS[3], FINDINGS[4]])
    t.strictSame(sent(bench).services, { include: [], exclude: [] }, 'the PCE is not asked to leave any out')
    t.strictSame(await lines({ process: ['\\Tools\\'] }), [FINDINGS[3]!.replace(/8$/, '1')], 'a folder is part of it')
    t.strictSame(
      await lines({ process: ['curl'], only_named_processes: false }),
      [1, 2, 5, 7].map((at) => FINDINGS[at]),
    )
    t.strictSame(await lines({ process: [] }), FINDINGS, 'an empty list is every process')
  })

  await t.test('only_named_processes false shows the rest', async (t) => {
    const answer = await bench.ok(TOOL, { only_named_processes: false })
    t.strictSame(answer.findings.map(line), [
      '- 10.0.0.1 (Any (0.0.0.0/0 and ::/0)) 53 udp potentially_blocked 50',
      ...FINDINGS,
    ])
    partial(t, answer.totals, { egress_rows: 12, distinct_processes: 5 })
    t.strictSame(answer.processes, PROCESSES, 'no name is no process')
  })

  await t.test('include_inbound: records of the destination itself', async (t) => {
    const answer = await bench.ok(TOOL, { include_inbound: true, process: ['smbd'] })
    t.strictSame(answer.findings.map(line), [FINDINGS[6], 'smbd nas 443 tcp unknown 2'])
    const nas = await bench.ok(TOOL, { include_inbound: true })
    partial(t, nas.examined, { outbound_rows: 15, with_external_destination: 13 })
    const row = nas.findings.find((one: Json) => one.process_runs_on === 'destination')
    partial(t, row, { process: 'smbd', destination: 'nas', connections: 2 })
    t.notOk(
      nas.findings.some((one: Json) => one.process === 'nginx'),
      'a managed listener is no egress',
    )
  })

  await t.test('filters: sources, decisions, rows', async (t) => {
    t.strictSame(await lines({ include_sources: ['env=dev'] }), [
      FINDINGS[0],
      FINDINGS[4],
      FINDINGS[3]!.replace(/8$/, '1'),
    ])
    t.strictSame(await lines({ include_sources: [{ key: 'app', value: 'desk' }] }), [
      FINDINGS[3]!.replace(/8$/, '7'),
      FINDINGS[6],
      FINDINGS[7],
      FINDINGS[8],
    ])
    t.strictSame(await lines({ policy_decisions: ['blocked', 'allowed'] }), [FINDINGS[5]])
    partial(t, sent(bench), { policy_decisions: ['blocked', 'allowed'], exclude_workloads_from_ip_list_query: false })

    const network = await bench.ok(TOOL, { include_sources: ['10.1.0.4/31'] })
    t.strictSame(network.findings.map(line), [FINDINGS[2], FINDINGS[5]])
    t.match(network.coverage_note, /10\.1\.0\.4\/31/)
    t.notOk('note' in network.analysed, 'coverage_note is the same')
    partial(t, network.totals, { pce_flows: 15, egress_rows: 2 })

    const few = await bench.ok(TOOL, { max_results: 3 })
    t.equal(sent(bench).max_results, 3)
    partial(t, few, {
      flows_truncated: true,
      totals: { pce_flows: 3, flows_truncated: true },
      coverage_note: /lower bounds/,
    })
  })

  await t.test('a process that may be beyond the row limit is not said to be absent', async (t) => {
    const cut = await bench.ok(TOOL, { process: ['ping'], max_results: 3 })
    partial(t, cut, {
      totals: { pce_flows: 3, egress_rows: 0 },
      message:
        'Only 3 rows could be looked at, and there are more. Among them: no flows in the window are of such a process. The process may be in the others.',
      hint: 'complete: true reads the rest; or narrow by include_sources, policy_decisions or a shorter window. Leave process out to see all of them.',
    })
    partial(t, await bench.ok(TOOL, { process: ['ping'], max_results: 3, complete: true }), {
      totals: { egress_rows: 1 },
      hint: undefined,
    })
    // What only the host jail, the decision blocked and the month before have is found as the hint advises.
    const one = { start_date: '2026-05-20', max_results: 1 }
    for (const [process, narrower] of [
      ['curl', { include_sources: [{ key: 'app', value: 'jail' }] }],
      ['curl', { policy_decisions: ['blocked'] }],
      ['old', { end_date: '2026-06-01' }],
    ] as const) {
      partial(t, await bench.ok(TOOL, { process: [process], ...one }), {
        totals: { egress_rows: 0 },
        hint: /^complete: true reads the rest; or narrow by include_sources, policy_decisions or a shorter window\./,
      })
      partial(t, await bench.ok(TOOL, { process: [process], ...one, ...narrower }), {
        totals: { egress_rows: 1 },
        hint: undefined,
      })
    }
    const some = await bench.ok(TOOL, { process: ['python'], max_results: 3 })
    t.match(some.message, /^Only 3 rows could be looked at, and there are more: the process may have/)
  })

  await t.test('the window', async (t) => {
    const windowOf = async (args: object) => {
      const { window } = await bench.ok(TOOL, args)
      partial(t, sent(bench), { start_date: window.start, end_date: window.end })
      return `${window.start} ${window.end}`
    }
    const today = '2026-06-15T23:59:59Z'
    t.equal(await windowOf({ lookback_days: 30 }), `2026-05-16T00:00:00Z ${today}`)
    t.equal(await windowOf({ start_date: '2026-06-01', lookback_days: 1 }), `2026-06-01T00:00:00Z ${today}`)
    t.equal(
      await windowOf({ start_date: '2026-05-20', end_date: '2026-05-30T10:00:00Z' }),
      '2026-05-20T00:00:00Z 2026-05-30T10:00:00Z',
    )
    t.equal(await windowOf({ end_date: '2026-06-13' }), '2026-06-08T00:00:00Z 2026-06-13T23:59:59Z')
    partial(t, await bench.ok(TOOL, { lookback_days: 30, process: ['old'] }), { findings: [{ connections: 99 }] })
  })

  await t.test('nothing found: the same shape, where rows were dropped and what to change', async (t) => {
    const answer = await bench.ok(TOOL, { process: ['nobody'] })
    partial(t, answer, { processes: [], providers: [], findings: [], totals: { egress_rows: 0, returned: 0 } })
    partial(t, answer, {
      message: 'No flows in the window are of such a process.',
      hint: /^Leave process out/,
      flows_truncated: false,
    })
    partial(t, await bench.ok(TOOL, { process: ['nginx'] }), { message: /inbound/, hint: /include_inbound/ })
    partial(t, await bench.ok(TOOL, { process: ['psql'] }), {
      message: /managed by this PCE/,
      examined: { outbound_rows: 1 },
    })
  })

  await t.test('bad arguments', async (t) => {
    const before = bench.simulator.requests.filter(({ method }) => method === 'POST').length
    for (const args of [
      { policy_decisions: ['denied'] },
      { policy_decisions: 'blocked' },
      { process: ['  '] },
      { process: 'curl' },
      { limit: 0 },
      { limit: 1001 },
      { max_results: 200_001 },
      { lookback_days: 366 },
      { exclude_inbound: true },
    ])
      await bench.fails(TOOL, args, 'invalid_argument')
    await bench.fails(TOOL, { start_date: '2026-02-30' }, 'invalid_window')
    await bench.fails(TOOL, { start_date: '2026-06-10', end_date: '2026-06-09' }, 'invalid_window')
    await bench.fails(TOOL, { start_date: '2026-07-01' }, 'invalid_window')
    await bench.fails(TOOL, { end_date: 'soon' }, 'invalid_window')
    const { message } = await bench.fails(TOOL, { end_date: '2026-06-01' }, 'invalid_window')
    t.match(message, /give start_date/)
    const { unresolved } = await bench.fails(TOOL, { include_sources: ['app=des'] }, 'unresolved_label_filter')
    t.strictSame(unresolved, ['app=des'], 'a part of a name is no name')
    t.equal(bench.simulator.requests.filter(({ method }) => method === 'POST').length, before, 'nothing was asked')
  })
})

t.test('a host is not named by its CDN alone', async (t) => {
  const estate = handMade({
    hosts: { a: { ip: '10.0.0.1', labels: 'app=a env=prod' }, b: { ip: '10.0.0.2', labels: 'app=b env=prod' } },
    flows: [
      { from: 'a', to: '172.66.0.9', process: '/bin/x', connections: 50 },
      { from: 'b', to: '172.66.0.9', fqdn: 'shop.example', process: '/bin/y', connections: 4 },
      { from: 'b', to: '172.66.0.9', fqdn: 'bank.example', process: '/bin/y', connections: 5 },
      { from: 'a', to: '13.32.1.1', fqdn: 'd1abc.cloudfront.net', process: '/bin/x', connections: 3 },
      { from: 'a', to: '13.32.1.2', fqdn: 'notcloudfront.net', process: '/bin/x', connections: 2 },
      ...Array.from({ length: 12 }, (_, at) => ({
        from: 'a',
        to: '104.16.0.1',
        fqdn: `${at + 10}.example`,
        process: '/bin/z',
        connections: 100 - at,
      })),
    ],
  })
  const bench = await startBench(t, { estate })
  const { findings, providers, note } = await bench.ok(TOOL)
  const of = (ip: string, process: string) =>
    findings
      .filter((row: Json) => row.dst_ip === ip && row.process === process)
      .map((row: Json) => [row.destination, row.provider_name, row.other_names, row.other_names_total])
  t.strictSame(of('172.66.0.9', 'x'), [
    ['172.66.0.9 (Any (0.0.0.0/0 and ::/0))', undefined, ['bank.example', 'shop.example'], 2],
  ])
  t.strictSame(of('172.66.0.9', 'y'), [
    ['bank.example', undefined, ['shop.example'], 1],
    ['shop.example', undefined, ['bank.example'], 1],
  ])
  t.strictSame(of('13.32.1.1', 'x'), [['d1abc.cloudfront.net', true, undefined, undefined]], 'its own name')
  t.strictSame(of('13.32.1.2', 'x'), [['notcloudfront.net', undefined, undefined, undefined]])
  const names = Array.from({ length: 12 }, (_, at) => `${at + 10}.example`)
  t.strictSame(of('104.16.0.1', 'z')[0], ['10.example', undefined, names.slice(1, 6), 11])
  t.strictSame(
    of('104.16.0.1', 'z').at(-1),
    ['21.example', undefined, names.slice(0, 5), 11],
    'the busiest of all others',
  )
  t.match(note, /other_names are the names that traffic has for it/)
  t.strictSame(
    providers.map(({ provider, destination_count: count, destinations }: Json) => [provider, count, destinations]),
    [
      ['cloudflare-fronted', 15, names.slice(0, 5)],
      ['aws-cloudfront', 2, ['d1abc.cloudfront.net', 'notcloudfront.net']],
    ],
    'and the busiest hosts behind each provider are named',
  )
  const alone = await bench.ok(TOOL, { sections: ['providers'] })
  t.strictSame(alone.providers[0].destinations, names.slice(0, 10), 'more of them where they are the only part')
})

t.test('traffic that names no process says how to see it', async (t) => {
  const estate = handMade({
    hosts: { a: { ip: '10.0.0.1', labels: 'app=a env=prod' } },
    flows: [{ from: 'a', to: '192.0.2.1' }],
  })
  const bench = await startBench(t, { estate })
  partial(t, await bench.ok(TOOL), { findings: [], message: /names a process/, hint: /only_named_processes/ })
  partial(t, await bench.ok(TOOL, { lookback_days: 1, start_date: '2026-06-01', end_date: '2026-06-02' }), {
    message: 'No flows in the window.',
    analysed: { rows: 0 },
  })
})

t.test('many destinations: names the busiest, counts all, and stays within the size', async (t) => {
  const flows = Array.from({ length: 400 }, (_, at) => ({
    from: 'a',
    to: `198.51.${Math.floor(at / 200)}.${1 + (at % 200)}`,
    process: at < 300 ? '/bin/scan' : `/bin/p${at}`,
    connections: at + 1,
  }))
  const estate = handMade({ hosts: { a: { ip: '10.0.0.1', labels: 'app=a env=prod' } }, flows })
  const bench = await startBench(t, { estate, budget: 30_000 })
  const answer = await bench.ok(TOOL, { limit: 1000 })
  t.ok(Buffer.byteLength(JSON.stringify(answer)) <= 30_000)
  partial(t, answer.totals, { findings: 400, distinct_processes: 101, findings_truncated: true })
  t.equal(answer.totals.returned, answer.findings.length)
  t.ok(answer.truncated_sections.includes('findings'))
  const [scan] = answer.processes
  partial(t, scan, { process: 'scan', destination_count: 300 })
  t.equal(scan.external_destinations.length, 5)
  t.ok(scan.external_destinations[0].startsWith('198.51.1.100 '), 'the busiest five, by name')
  const [alone] = (await bench.ok(TOOL, { sections: ['processes'] })).processes
  t.equal(alone.external_destinations.length, 20)
  t.strictSame(alone.external_destinations, [...alone.external_destinations].sort())
  t.equal((await bench.ok(TOOL)).findings.length, 20, 'twenty findings unless told otherwise')
})

/** A row as the PCE writes it; the simulator filters as the PCE does and adds no rules, so some are made by hand. */
const flow = (parts: Json): TrafficFlow => ({
  src: { ip: '10.0.0.1' },
  dst: { ip: '192.0.2.1', ...parts.dst },
  service: { port: 443, proto: 6, ...parts.service },
  num_connections: 1,
  policy_decision: 'allowed',
  flow_direction: 'outbound',
  ...parts.flow,
})

function find(flows: readonly TrafficFlow[], choice: Partial<EgressChoice> = {}): Egress {
  const encoder = createFlowEncoder(null)
  const finder = createEgressFinder(encoder, { processes: [], includeInbound: false, onlyNamed: true, ...choice })
  for (const one of flows) finder.add(encoder.encode(one))
  const steps = finder.finish(50, 5)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

t.test('process names: the last part of a Windows or Unix path', async (t) => {
  const names = ['/usr/bin/a', 'C:\\Dir\\b.exe', 'c', '/opt/d/', '/', '\\\\host\\share\\e.exe', 'x/y\\f']
  const { findings } = find(names.map((process_name) => flow({ service: { process_name } })))
  t.strictSame(findings.groups.map(({ keys }) => keys.process).sort(), ['/', 'a', 'b.exe', 'c', 'd', 'e.exe', 'f'])
})

t.test('filters again what a PCE returns beyond the requested processes', async (t) => {
  const flows = ['/usr/bin/Curl', '/usr/bin/wget', null].map((process_name) => flow({ service: { process_name } }))
  const { steps, findings } = find(flows, { processes: ['CURL'], onlyNamed: false })
  t.equal(steps.egress_rows, 1)
  t.equal(findings.groups[0]?.keys.process, 'Curl')
})

t.test('rule, decision and name of an address distinguish findings', async (t) => {
  const service = { process_name: 'p' }
  const { findings, processes } = find([
    flow({ service, flow: { rules: [{ href: '/orgs/1/sec_policy/active/rule_sets/1/sec_rules/2' }] } }),
    flow({ service }),
    flow({ service, flow: { policy_decision: 'blocked' } }),
    flow({ service, dst: { fqdn: 'a.example' } }),
    flow({ service, dst: { fqdn: 'b.example' } }),
    flow({ service, dst: { fqdn: 'b.example' } }),
  ])
  t.equal(findings.total, 5)
  t.strictSame(
    findings.groups.map(showFinding).flatMap((row) => row.matched_rule ?? []),
    ['/orgs/1/sec_policy/active/rule_sets/1/sec_rules/2'],
  )
  t.equal(processes.rows[0]?.destination_count, 3)
})

t.test('a managed destination is never external; a workload without a VEN is', async (t) => {
  const service = { process_name: 'p' }
  const { steps } = find([
    flow({ service, dst: { workload: { href: '/orgs/1/workloads/1', managed: true } } }),
    flow({ service, dst: { workload: { href: '/orgs/1/workloads/2', hostname: 'h', managed: false } } }),
    flow({ service, flow: { flow_direction: null } }),
  ])
  t.strictSame(steps, {
    wanted_rows: 3,
    outbound_rows: 3,
    with_external_destination: 2,
    without_process: 0,
    egress_rows: 2,
  })
})

t.test('names no more than fits and counts everything', async (t) => {
  const flows = Array.from({ length: 60 }, (_, at) => ({
    from: 'a',
    to: '8.8.8.8',
    process: `/bin/p${99 - at}`,
    connections: 1 + at,
  }))
  const users = ['g', 'c', 'a', 'f', 'b', 'e', 'd'].map((user, at) => ({
    from: 'a',
    to: '192.0.2.1',
    process: '/bin/p40',
    user,
    connections: 1 + at,
  }))
  const estate = handMade({ hosts: { a: { ip: '10.0.0.1', labels: 'app=a env=prod' } }, flows: [...flows, ...users] })
  const bench = await startBench(t, { estate })
  const { findings } = await bench.ok(TOOL, { limit: 1000 })
  const { providers } = await bench.ok(TOOL, { sections: ['providers'] })
  partial(t, providers, [{ provider: 'google-services', process_count: 60, connections: 1830 }])
  t.strictSame(
    providers[0].processes,
    Array.from({ length: 50 }, (_, at) => `p${40 + at}`),
    'the first fifty by name',
  )
  const finding = findings.find(({ dst_ip: ip }: Json) => ip === '192.0.2.1')
  partial(t, finding, { user_count: 7, source_hosts: 1 })
  t.strictSame(finding.users, ['a', 'b', 'c', 'd', 'e'], 'the first five by name')
  partial(t, await bench.ok(TOOL, { include_sources: ['10.9.9.9'] }), { message: /pass include_sources/ })
  partial(t, await bench.ok(TOOL, { policy_decisions: ['blocked'] }), { message: /and policy_decisions/ })
})

t.test('a workload is one source whatever its addresses; without either there is none', async (t) => {
  const service = { process_name: 'p' }
  const from = (src: object) => ({ ...flow({ service }), src }) as TrafficFlow
  const workload = (id: number) => ({ href: `/orgs/1/workloads/${id}`, managed: true })
  const { findings } = find([
    from({ ip: '10.0.0.1', workload: workload(1) }),
    from({ ip: '10.0.0.2', workload: workload(1) }),
    from({ ip: '10.0.0.4', workload: workload(1) }),
    from({ ip: '10.0.0.2', workload: workload(2) }),
    from({ ip: '10.0.0.3' }),
    from({}),
  ])
  t.equal(findings.total, 1)
  partial(t, findings.groups.map(showFinding), [{ connections: 6, source_hosts: 3 }])
})

t.test('traffic without a process counts for a provider but is not one of its processes', async (t) => {
  const dst = { ip: '8.8.8.8' }
  const { processes, providers } = find([flow({ dst }), flow({ dst, service: { process_name: '/bin/a' } })], {
    onlyNamed: false,
  })
  t.strictSame(providers, [
    {
      provider: 'google-services',
      provider_confidence: 'ambiguous',
      connections: 2,
      process_count: 1,
      processes: ['a'],
      destination_count: 1,
      destinations: ['8.8.8.8'],
    },
  ])
  t.strictSame(processes, {
    total: 1,
    rows: [{ process: 'a', destination_count: 1, external_destinations: ['8.8.8.8'] }],
  })
})

t.test('keeps a long list of rules complete', async (t) => {
  const rules = Array.from({ length: 40 }, (_, at) => ({
    href: `/orgs/1/sec_policy/active/rule_sets/${1000 + at}/sec_rules/${5000 + at}`,
  }))
  const { findings } = find([flow({ service: { process_name: 'p' }, flow: { rules } })])
  const [shown] = findings.groups.map(showFinding)
  t.equal(shown?.matched_rule, rules.map(({ href }) => href).join(', '))
})
