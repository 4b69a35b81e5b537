/** get-compatibility-reports: what keeps idle workloads idle, and of which workloads that is not known. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeHost } from '../tools/hand-made.js'
import { NOW, startBench, type Bench, type BenchOptions, type Json } from '../tools/harness.js'

const TODAY = '2026-06-15T06:00:00.000Z'
const IPTABLES = { status: 'yellow', iptables_rule_cnt: 12 }
const PACKAGES = { status: 'red', required_packages_installed: false, required_packages_missing: ['ipset', 'libmnl'] }
const FINE = { status: 'green', required_packages_installed: true }
const report = (verdict: string | null, tests: object[] | null, at: string | null = TODAY) => ({
  last_updated_at: at,
  qualify_status: verdict,
  results: tests === null ? null : { qualify_tests: tests },
})

/** What the PCE answers about the idle host of a name; every other idle host is green. */
const REPORTS: Record<string, unknown> = {
  'a-red': report('red', [PACKAGES, IPTABLES, FINE]),
  'b-yellow': report('yellow', [IPTABLES, { status: 'yellow', Brand_new: { a: [1] } }]),
  'c-empty': {},
  'd-none': null,
  'e-down': 503,
  'f-denied': 403,
  'g-odd': report('purple', [FINE]),
  'h-contradicts': report('green', [IPTABLES]),
  'i-bare': report('green', null),
  'j-old': report('green', [FINE], '2026-06-10T06:00:00.000Z'),
  'k-undated': report('green', [FINE], null),
  'l-list': [1],
  'm-green': report('green', [FINE, { required_packages_missing: [] }]),
}
const IDLE: HandMadeHost = { ip: '', labels: 'app=pay', mode: 'idle' }
const HOSTS: Record<string, HandMadeHost> = {
  ...Object.fromEntries(Object.keys(REPORTS).map((name, at) => [name, { ...IDLE, ip: `10.0.0.${at + 1}` }])),
  'n-full': { ip: '10.0.1.1', labels: 'app=pay', mode: 'full' },
  'o-box': { ip: '10.0.1.2', labels: 'app=pay', managed: false },
}
const hrefOf = (name: string) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(HOSTS).indexOf(name) + 1).padStart(12, '0')}`

async function start(t: Test, options: BenchOptions = {}): Promise<Bench> {
  const bench = await startBench(t, { estate: handMade({ hosts: HOSTS }), ...options })
  for (const [name, body] of Object.entries(REPORTS)) {
    const path = `${hrefOf(name).replace('/workloads/', '/vens/')}/compatibility_report`
    bench.simulator.faults.add(
      typeof body === 'number'
        ? { kind: 'status', path, times: 99, status: body }
        : body === null
          ? { kind: 'status', path, times: 99, status: 404 }
          : { kind: 'answer', path, times: 99, body },
    )
  }
  return bench
}

const brief = ({ reports }: Json): string[] => reports.map(({ name, status }: Json) => `${name} ${status}`)
const asked = ({ simulator }: Bench) => simulator.requests.filter(({ path }) => path.includes('compatibility_report'))

t.test('what keeps workloads idle, worst first, and what is not known apart from what is fine', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('get-compatibility-reports')
  t.same(brief(answer), [
    'a-red red',
    'g-odd unclear',
    'h-contradicts unclear',
    'i-bare unclear',
    'l-list unclear',
    'e-down not_read',
    'f-denied not_read',
    'c-empty not_reported',
    'd-none not_reported',
    'b-yellow yellow',
    'j-old green',
    'k-undated green',
  ])
  partial(t, answer, {
    workloads: { idle: 13, not_idle: 0, unmanaged: 0, asked: 13, left: 0 },
    counts: { red: 1, yellow: 1, green: 3, unclear: 4, not_read: 2, not_reported: 2, not_idle: 0 },
    old_reports: 2,
    summary:
      '13 idle workloads: 1 red (a major incompatibility: solve it before they leave idle mode), 1 yellow (a potential one: look at it first), 3 green, 4 unclear, 2 without a report yet, 2 that could not be read. Not listed: 1 green; status ["green"] lists them.',
    not_listed: { green: 1 },
    truncated: false,
    warnings: ['The reports of 2 workloads could not be read.'],
  })
  t.same(
    answer.checks.map(({ check, red, yellow }: Json) => [check, red, yellow]),
    [
      ['required_packages_installed', 1, 0],
      ['iptables_rule_cnt', 0, 3],
      ['Brand_new', 0, 1],
    ],
  )
  t.match(answer.checks[1].means, /^the host has iptables rules of its own/)
  t.equal(answer.checks[2].means, 'the check Brand new failed; what it means is not known here')
  t.same(answer.reports[0], {
    name: 'a-red',
    href: hrefOf('a-red'),
    status: 'red',
    failed: ['required_packages_installed: ipset, libmnl (red)', 'iptables_rule_cnt: 12 (yellow)'],
    last_updated_at: TODAY,
    online: true,
    os: answer.reports[0].os,
    enforcement_mode: 'idle',
  })
  const noteOf = (name: string) => answer.reports.find((one: Json) => one.name === name).note
  t.same(['c-empty', 'd-none', 'g-odd', 'h-contradicts', 'i-bare', 'l-list'].map(noteOf), [
    'The PCE has an empty report of it.',
    'The PCE has no report of it.',
    'Its report has the verdict purple.',
    'Its report is green, and some of its checks are not.',
    'Its report is green, and says nothing of any check.',
    'The PCE answered something other than a report.',
  ])
  t.match(noteOf('f-denied'), /403/)
  t.same(bench.writes(), [])
})

t.test('those that are not idle are named, and not asked about', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('get-compatibility-reports', {
    workloads: ['n-full', 'a-red', 'o-box', hrefOf('a-red')],
  })
  t.same(brief(answer), ['a-red red', 'n-full not_idle'])
  t.equal(answer.reports[1].enforcement_mode, 'full')
  t.same(answer.workloads, { idle: 1, not_idle: 1, unmanaged: 1, asked: 1, left: 0 })
  t.match(answer.summary, / 1 not idle, so without a report\.$/)
  t.same(answer.warnings, ['1 workload without a VEN have no report.'])
  t.equal(asked(bench).length, 1)

  const byLabel = await bench.ok('get-compatibility-reports', { labels: ['app=pay'], status: ['red', 'not_idle'] })
  t.same(brief(byLabel), ['a-red red', 'n-full not_idle'])
  t.same(byLabel.workloads, { idle: 13, not_idle: 1, unmanaged: 1, asked: 13, left: 0 })
  t.equal(byLabel.counts.not_idle, 1)
  t.same(brief(await bench.ok('get-compatibility-reports', { labels: ['app=pay'], status: ['red'] })), ['a-red red'])
})

t.test('a name is exact, and what cannot be resolved is an error', async (t) => {
  const bench = await start(t)
  await bench.fails('get-compatibility-reports', { workloads: ['a-re'] }, 'not_found')
  await bench.fails('get-compatibility-reports', { labels: ['app=nobody'] }, 'unresolved_label_filter')
  await bench.fails(
    'get-compatibility-reports',
    { workloads: ['a-red'], labels: ['app=pay'] },
    'conflicting_identifiers',
  )
  t.equal(asked(bench).length, 0)
})

t.test('pages cover each workload once, in few requests', async (t) => {
  const bench = await start(t)
  const whole = await bench.ok('get-compatibility-reports', { max_results: 50 })
  const seen: string[] = []
  const counted: number[] = []
  let cursor: string | undefined
  do {
    const page = await bench.ok('get-compatibility-reports', { max_results: 3, ...(cursor && { cursor }) })
    seen.push(...brief(page))
    counted.push(Object.values(page.counts as Record<string, number>).reduce((sum, many) => sum + many, 0))
    t.equal(page.workloads.asked + page.workloads.left + counted.slice(0, -1).reduce((a, b) => a + b, 0), 13)
    cursor = page.next_cursor
    t.equal(page.truncated, cursor !== undefined)
  } while (cursor !== undefined)
  t.same(seen.sort(), brief(whole).sort())
  t.equal(
    counted.reduce((sum, many) => sum + many, 0),
    13,
  )
  const small = await startSmall(t)
  t.ok(
    small.next_cursor !== undefined && JSON.stringify(small).length <= 3_000,
    `${JSON.stringify(small).length} bytes`,
  )

  async function startSmall(t: Test) {
    return (await start(t, { budget: 3_000 })).ok('get-compatibility-reports', { max_results: 50 })
  }
})

t.test('a report is asked for at the agent where the PCE names one', async (t) => {
  const estate = handMade({
    hosts: { one: IDLE, two: { ...IDLE, ip: '10.0.0.2' }, three: { ...IDLE, ip: '10.0.0.3' } },
  })
  const [one, , three] = estate.workloads as Json[]
  Object.assign(one, { agent: { href: '/orgs/1/agents/4', config: {}, status: {} } })
  Object.assign(three, { ven: { href: '/orgs/2/vens/x' }, agent: { href: '/orgs/1/labels/1' } })
  const bench = await startBench(t, { estate })
  const answer = await bench.ok('get-compatibility-reports', { status: ['red', 'yellow', 'green', 'not_read'] })
  t.same(
    asked(bench)
      .map(({ path }) => path.replace('/api/v2', ''))
      .sort(),
    ['/orgs/1/agents/4/compatibility_report', `${(estate.workloads[1] as Json).ven.href}/compatibility_report`],
  )
  t.same(
    brief(answer),
    ['three not_read', 'two red', 'one yellow'].sort((a, b) => (a.endsWith('red') ? -1 : b.endsWith('red') ? 1 : 0)),
  )
  t.match(answer.reports[1].note, /names no VEN/)
})

t.test('a call asks for a bounded number of reports, says how it goes, and can be cancelled', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 230 }, (_, n) => [
      `h-${String(n).padStart(3, '0')}`,
      { ...IDLE, ip: `10.1.${n >> 8}.${n & 255}` },
    ]),
  )
  const bench = await startBench(t, { estate: handMade({ hosts }) })
  const args = { max_results: 500, fields: ['name'] }
  const first = await bench.ok('get-compatibility-reports', args)
  t.same([first.workloads.asked, first.workloads.left], [200, 30])
  t.match(first.summary, / 30 more were not asked about: next_cursor goes on\. Not listed: 66 green; status /)
  t.equal(asked(bench).length, 200)
  t.same(
    bench.progress.map(({ progress }) => progress),
    [0, 20, 40, 60, 80, 100, 120, 140, 160, 180],
  )
  const second = await bench.ok('get-compatibility-reports', { ...args, cursor: first.next_cursor })
  t.same([second.workloads.asked, second.workloads.left, 'next_cursor' in second], [30, 0, false])

  const before = asked(bench).length
  t.equal(
    (await bench.cancelled('get-compatibility-reports', {}, ({ progress }) => progress === 20)).error,
    'cancelled',
  )
  t.ok(asked(bench).length - before <= 25)
})

t.test('a PCE that answers for none is not asked about all', async (t) => {
  const hosts = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`h-${n}`, { ...IDLE, ip: `10.1.0.${n + 1}` }]))
  const bench = await startBench(t, { estate: handMade({ hosts }), now: () => NOW })
  bench.simulator.faults.add({ kind: 'status', path: /compatibility_report$/, times: 999, status: 403 })
  const answer = await bench.ok('get-compatibility-reports', { max_results: 100 })
  t.same([answer.workloads.asked, answer.workloads.left, answer.counts.not_read], [20, 40, 20])
  t.match(answer.warnings[1], /answered for none/)
  t.type(answer.next_cursor, 'string')
})
