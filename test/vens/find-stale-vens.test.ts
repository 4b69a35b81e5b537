/** find-stale-vens: which VENs fell silent, what hangs on them, which of their hosts live, and what is not known. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Bench, type BenchOptions, type Json } from '../tools/harness.js'

interface Machine extends HandMadeHost {
  /** Days since its last heartbeat; null: none is told. Default: heard of a moment ago. */
  silent?: number | null
  status?: string
  hostname?: string
}

const DAY_MS = 86_400_000
const NOW = Date.parse('2026-06-15T12:00:00Z')
const PAY = 'app=pay env=prod'
const HOSTS: Record<string, Machine> = {
  client: { ip: '10.0.9.9', labels: 'app=client env=prod' },
  talks: { ip: '10.0.0.1', labels: PAY, mode: 'full', silent: 20, online: false },
  'talks-bare': { ip: '10.0.0.2', labels: PAY, silent: 19, online: false },
  answers: { ip: '10.0.0.3', labels: PAY, silent: 18, online: false },
  called: { ip: '10.0.0.4', labels: PAY, silent: 17, online: false },
  quiet: { ip: '10.0.0.5', labels: `${PAY} role=last`, mode: 'full', silent: 30, online: false },
  talked: { ip: '10.0.0.6', labels: PAY, silent: 9, online: false },
  old: { ip: '10.0.0.7', labels: PAY, silent: 16, online: false, hostname: 'pay.example.com' },
  'old-again': { ip: '10.0.0.7', labels: PAY, hostname: 'PAY.example.com' },
  shared: { ip: '10.0.0.8', labels: PAY, silent: 15, online: false },
  'shared-box': { ip: '10.0.0.8', labels: PAY, managed: false },
  laptop: { ip: '10.0.0.10', silent: 10, online: false, endpoint: true },
  'old-laptop': { ip: '10.0.0.11', silent: 40, online: false, endpoint: true },
  marked: { ip: '10.0.0.12', labels: 'env=dev', silent: 14, online: false, status: 'suspended' },
  odd: { ip: '10.0.0.13', labels: 'env=dev', silent: 13, online: true },
  untold: { ip: '10.0.0.14', labels: 'env=dev', silent: null },
  away: { ip: '10.0.0.15', labels: 'env=dev', silent: 99, status: 'uninstalled' },
  week: { ip: '10.0.0.16', labels: 'env=dev', silent: 6.9 },
}
const PARTS: HandMadeEstate = {
  hosts: HOSTS,
  ipLists: {
    Wide: ['10.0.0.0/24'],
    Alone: ['10.0.0.5'],
    Slash: ['10.0.0.5/32', '192.168.0.0/16'],
    Without: ['10.0.0.0/24', '!10.0.0.5'],
  },
  ruleSets: [
    {
      name: 'Pay',
      scope: '',
      allow: [
        { from: 'app=client', to: 'role=last' },
        { from: 'app=client', to: 'app=pay' },
        { from: 'host:quiet', to: 'app=client' },
        { from: 'host:quiet', to: 'app=client', enabled: false },
      ],
    },
  ],
  flows: [
    { from: 'talks', to: 'client', direction: 'inbound', daysAgo: 2, connections: 5 },
    { from: '10.0.0.2', to: 'client', direction: 'inbound', daysAgo: 2, connections: 4 },
    { from: 'client', to: 'answers', daysAgo: 3, connections: 3 },
    { from: 'client', to: 'called', daysAgo: 3, connections: 2, port: 444 },
    { from: 'talked', to: 'client', direction: 'inbound', daysAgo: 10, connections: 9 },
    { from: '10.0.0.8', to: 'client', direction: 'inbound', daysAgo: 2, connections: 6 },
    { from: 'old-again', to: 'client', direction: 'inbound', daysAgo: 1, connections: 7 },
  ],
}
const hrefOf = (name: string) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(HOSTS).indexOf(name) + 1).padStart(12, '0')}`

async function start(
  t: Test,
  options: BenchOptions = {},
  parts: HandMadeEstate = PARTS,
  change: (estate: Json) => void = () => {},
): Promise<Bench> {
  const estate = handMade(parts)
  for (const workload of estate.workloads as Json[]) {
    const { silent = 0, status = 'active', hostname, managed } = HOSTS[workload.name as string] as Machine
    if (hostname !== undefined) workload.hostname = hostname
    if (managed === false) continue
    const heard = silent === null ? null : new Date(NOW - silent * DAY_MS - 60_000).toISOString()
    workload.ven.status = status
    workload.agent = { config: {}, status: { last_heartbeat_on: heard, status } }
  }
  for (const one of estate.conversations as Json[]) if (one.service.port === 444) one.bytesOut = 0
  change(estate)
  return startBench(t, { estate, ...options })
}

const rowOf = ({ stale }: Json, name: string): Json => stale.find((row: Json) => row.name === name)
const ALL = { max_results: 50, lookback_days: 14 }

t.test('each silent VEN has an advice, and hosts that live come first', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('find-stale-vens', ALL)
  t.same(
    answer.stale.map(({ name, advice, silent_days: days }: Json) => [name, advice, days].join(' ')),
    [
      'talks look 20',
      'talks-bare look 19',
      'answers look 18',
      'called look 17',
      'shared look 15',
      'odd look 13',
      'old-laptop unpair 40',
      'quiet unpair 30',
      'old unpair 16',
      'talked unpair 9',
      'marked keep 14',
      'laptop keep 10',
    ],
  )
  partial(t, answer, {
    summary:
      '12 VENs of 17 without a heartbeat for 7 days: 6 to look at, 4 that may be unpaired, 2 to keep. Of these, 3 run on hosts that live, by traffic of the last 14 days. Nothing is unpaired here.',
    vens: { vens: 17, heard: 3, stale: 12, not_known: 1, uninstalled: 1 },
    counts: { look: 6, unpair: 4, keep: 2, alive: 3, left: 0 },
    warnings: ['Of 1 VEN no heartbeat is known: "untold".'],
  })
  t.same([answer.truncated, 'next_cursor' in answer], [false, false])
  t.same(bench.writes(), [])
  const asked = bench.simulator.requests.find(({ path }) => path.endsWith('/traffic_flows/async_queries'))
  const ends: Json[] = (asked?.body as Json).destinations.include.flat()
  t.ok(
    ends.some(({ ip_address: address }) => address === '10.0.0.5'),
    'traffic is asked for by address, too',
  )
  t.ok(ends.some(({ workload }) => workload?.href === hrefOf('quiet')))
  const why = (name: string): string => rowOf(answer, name).why
  t.match(
    why('talks'),
    /^Its host lives: 5 connections came from it in the window, long after the last heartbeat of the VEN\./,
  )
  t.match(why('talks-bare'), /: 4 connections came from it/)
  t.match(why('answers'), /^Its host lives: 3 connections to it were answered/)
  t.match(why('called'), /^2 connections went to it since, and whether it answered is not known\.$/)
  t.match(why('shared'), /^There is traffic of its address, which others have too/)
  t.match(why('odd'), /counts it as online/)
  t.match(why('old'), /^Its host was paired anew as "old-again"/)
  t.match(why('quiet'), /^No traffic of it was reported since\. Make sure/)
  t.match(why('marked'), /marked as suspended/)
  t.match(why('laptop'), /laptop or desktop, silent for 10 days/)
})

t.test('what hangs on each', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('find-stale-vens', ALL)
  partial(t, rowOf(answer, 'quiet'), {
    href: hrefOf('quiet').replace('workloads', 'vens'),
    workload_href: hrefOf('quiet'),
    enforcement_mode: 'full',
    online: false,
    status: 'active',
    labels: ['app=pay', 'env=prod', 'role=last'],
    rules_naming_it: 2,
    named_in: ['Pay'],
    rules_applying: 3,
    rules: [
      'allow rule "app=client to role=last, All Services" in "Pay", which reaches nobody else',
      'allow rule "quiet to app=client, All Services" in "Pay", which reaches nobody else',
      'allow rule "app=client to app=pay, All Services" in "Pay"',
    ],
    rules_only_it: 2,
    virtual_services: 0,
    ip_lists: 3,
    ip_list_names: ['Wide', 'Alone', 'Slash'],
    ip_lists_naming: ['Alone', 'Slash'],
    traffic_since: { from: 0, answered: 0, to: 0, undecided: 0, last_seen: null },
    first: [
      '2 rules in "Pay" name it by itself: change them.',
      '2 rules in force reach nobody but it: they may go with it.',
      '2 IP lists name its address: take it out.',
    ],
  })
  partial(t, rowOf(answer, 'talks'), {
    rules_naming_it: 0,
    rules_applying: 1,
    rules_only_it: 0,
    ip_lists: 2,
    traffic_since: { from: 5, answered: 0, to: 0, undecided: 0 },
  })
  t.equal(rowOf(answer, 'talks').traffic_since.last_seen.slice(0, 10), '2026-06-13')
  t.same(rowOf(answer, 'old').same_address, ['old-again (VEN heard of since, same host name)'])
  t.same(rowOf(answer, 'old').traffic_since.from, 0, 'what names the new pairing is not its own')
  t.same(rowOf(answer, 'shared').same_address, ['shared-box (no VEN)'])
  t.same(rowOf(answer, 'shared').traffic_since.undecided, 6)
  t.same(rowOf(answer, 'talked').traffic_since.from, 0, 'traffic of the time when it was heard of is not life')
})

t.test('a rule that reaches a VEN by its address alone is among its rules', async (t) => {
  const allow = [
    { from: 'app=client', to: 'iplist:Alone' },
    { from: 'iplist:Wide', to: 'app=client' },
    // These do not: everybody's address, another one's, and one that its list leaves out.
    { from: 'any', to: 'app=client' },
    { from: 'iplist:Other', to: 'app=client' },
    { from: 'iplist:Without', to: 'app=client' },
    // By its labels already (it gets the list as well), so once.
    { from: 'role=last', to: 'app=client' },
  ]
  const parts = {
    ...PARTS,
    ipLists: { ...PARTS.ipLists, Other: ['10.0.0.4'] },
    ruleSets: [{ name: 'Lists', scope: '', allow }],
  }
  const bench = await start(t, {}, parts, ({ ruleSets, ipLists }) => {
    const { href } = ipLists.find(({ name }: Json) => name === 'Alone')
    ruleSets[0].rules[5].consumers.push({ ip_list: { href } })
  })
  const { stale } = await bench.ok('find-stale-vens', { ...ALL, ven: 'quiet' })
  partial(t, stale[0], {
    rules_applying: 3,
    rules: [
      'allow rule "role=last + Alone to app=client, All Services" in "Lists", which reaches nobody else',
      'allow rule "app=client to Alone, All Services" in "Lists", by its address',
      'allow rule "Wide to app=client, All Services" in "Lists", by its address',
    ],
    rules_naming_it: 0,
  })
})

/** Number of rules that apply to each VEN of app=pay, and of IP lists of domain names, which may have any address. */
const MANY = 200
const names = (prefix: string) => Array.from({ length: MANY }, (_, at) => `${prefix}${String(at).padStart(3, '0')}`)

t.test('what hangs on many is named in part, and of one VEN whole', async (t) => {
  const rules = names('p').map((value, at) => ({ from: `app=${value}`, to: at === 0 ? 'loc=moon' : 'app=pay' }))
  const deny = [{ from: 'role=last', to: 'app=client', services: [{ port: 22, proto: 6 }] }]
  const lists = names('Cloud ')
  const parts = {
    ...PARTS,
    ipLists: { ...PARTS.ipLists, ...Object.fromEntries(lists.map((name) => [name, []])) },
    ruleSets: [...(PARTS.ruleSets ?? []), { name: 'Many', scope: '', allow: rules, deny }],
  }
  const bench = await start(t, {}, parts, ({ workloads, ipLists, ruleSets }) => {
    for (const list of ipLists) if (lists.includes(list.name)) list.fqdns = [{ fqdn: '*.cloud.example.com' }]
    for (const workload of workloads) if (workload.name.endsWith('laptop')) workload.hostname = 'lt.example.com'
    ruleSets[1].rules[0].providers[0].exclusion = true
  })
  const all = await bench.ok('find-stale-vens', ALL)
  t.ok(JSON.stringify(all).length <= 24_000)
  const quiet = rowOf(all, 'quiet')
  partial(t, quiet, {
    rules_applying: MANY + 3,
    rules: [
      'allow rule "app=client to role=last, All Services" in "Pay", which reaches nobody else',
      'allow rule "quiet to app=client, All Services" in "Pay", which reaches nobody else',
      'deny rule "role=last to app=client, 22/tcp" in "Many", which reaches nobody else',
      `${MANY} more`,
    ],
    rules_undecided: 1,
    undecided_rules: ['allow rule "app=p000 to not loc=moon, All Services" in "Many": labels that a rule excludes'],
    ip_lists: 3,
    ip_lists_undecided: MANY,
    undecided_ip_lists: [
      '"Cloud 000": IP lists of domain names',
      '"Cloud 001": IP lists of domain names',
      '"Cloud 002": IP lists of domain names',
      `${MANY - 3} more`,
    ],
  })

  const collected: Record<string, string[]> = {}
  let pages = 0
  let cursor: string | undefined
  do {
    const page = await bench.ok('find-stale-vens', { ven: 'quiet', lookback_days: 14, ...(cursor && { cursor }) })
    t.ok(JSON.stringify(page).length <= 24_000)
    t.equal(page.stale.length, 1)
    for (const field of ['rules', 'undecided_rules', 'ip_list_names', 'undecided_ip_lists', 'ip_lists_naming'])
      collected[field] = [...(collected[field] ?? []), ...(page.stale[0][field] ?? [])]
    pages += 1
    cursor = page.next_cursor
    t.equal(page.truncated, cursor !== undefined)
  } while (cursor !== undefined)
  t.ok(pages > 1)
  const { rules: named = [], undecided_ip_lists: unsure = [], ...rest } = collected
  t.same([named.length, new Set(named).size, unsure.length, new Set(unsure).size], [MANY + 3, MANY + 3, MANY, MANY])
  t.same(named.at(-1), `allow rule "app=p${MANY - 1} to app=pay, All Services" in "Many"`)
  t.same(rest, {
    undecided_rules: quiet.undecided_rules,
    ip_list_names: quiet.ip_list_names,
    ip_lists_naming: ['Alone', 'Slash'],
  })

  const one = await bench.ok('find-stale-vens', { ven: hrefOf('marked'), lookback_days: 14 })
  t.same(
    [one.summary, one.counts],
    [
      '"marked" without a heartbeat for 14 days: to keep. It is marked as suspended, which somebody did on purpose. Nothing is unpaired here.',
      { look: 0, unpair: 0, keep: 1, alive: 0, left: 0 },
    ],
  )
  const near = await bench.fails('find-stale-vens', { ven: 'quite' }, 'not_found')
  t.same(near.near_names, ['quiet'])
  await bench.fails('find-stale-vens', { ven: 'old-again' }, 'not_found')
  const twice = await bench.fails('find-stale-vens', { ven: 'lt.example.com' }, 'ambiguous_name')
  t.same(twice.candidates.map(({ name }: Json) => name).sort(), ['laptop', 'old-laptop'])
})

t.test('a selection and a time choose, and pages cover all', async (t) => {
  const bench = await start(t)
  const dev = await bench.ok('find-stale-vens', { labels: ['env=dev'] })
  t.same(
    [dev.stale.map(({ name }: Json) => name), dev.vens],
    [['odd', 'marked'], { vens: 5, heard: 1, stale: 2, not_known: 1, uninstalled: 1 }],
  )
  const long = await bench.ok('find-stale-vens', { silent_days: 30 })
  t.same(long.stale.map(({ name }: Json) => name).sort(), ['old-laptop', 'quiet'])
  const none = await bench.ok('find-stale-vens', { silent_days: 200 })
  t.equal(none.summary, '0 VENs of 17 without a heartbeat for 200 days.')
  t.same([none.stale, 'window' in none], [[], false])

  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await bench.ok('find-stale-vens', { lookback_days: 14, max_results: 5, ...(cursor && { cursor }) })
    seen.push(...page.stale.map(({ name }: Json) => name))
    cursor = page.next_cursor
    t.equal(page.truncated, cursor !== undefined)
  } while (cursor !== undefined)
  t.same([seen.length, new Set(seen).size], [12, 12])
  await bench.fails('find-stale-vens', { labels: ['env=nowhere'] }, 'unresolved_label_filter')
  await bench.fails('find-stale-vens', { silent_days: 0 }, 'invalid_argument')
})

t.test('what could not be read is not known, and nothing is advised to be unpaired for it', async (t) => {
  const bench = await start(t)
  const fault = (path: string) => bench.simulator.faults.add({ kind: 'status', path, times: 99, status: 403 })
  fault('/orgs/1/sec_policy/active/rule_sets')
  const rules = await bench.ok('find-stale-vens', ALL)
  partial(t, rowOf(rules, 'quiet'), {
    advice: 'look',
    why: 'Not all that hangs on it could be read.',
    rules_naming_it: null,
    rules_applying: null,
    rules_only_it: null,
  })
  t.equal(rowOf(rules, 'talks').why.slice(0, 14), 'Its host lives')
  t.match(rules.warnings[1], /^Which rules hang on them is not known: /)

  bench.simulator.faults.clear()
  fault('/orgs/1/sec_policy/draft/ip_lists')
  fault('/orgs/1/traffic_flows')
  const blind = await bench.ok('find-stale-vens', ALL)
  partial(t, rowOf(blind, 'quiet'), { advice: 'look', ip_lists: null, traffic_since: null })
  t.equal(blind.counts.unpair, 0)
  t.match(
    blind.warnings.join(' '),
    /What traffic they have is not known: .*Which IP lists have their addresses is not known: /,
  )
})
