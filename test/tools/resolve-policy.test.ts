/** resolve-policy on an estate made by hand: the whole right rows, what is said of the rest, and CSV that no spreadsheet runs. */
import t from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const TCP = (port: number) => ({ port, proto: 6 })
const ESTATE = handMade({
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' },
    'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web', mode: 'selective', online: false },
    'pay-db': { ip: '10.0.0.9', labels: 'app=pay env=prod role=db', mode: 'full' },
    'shop-1': { ip: '10.0.1.1', labels: 'app=shop env=prod', managed: false },
  },
  ipLists: {
    Office: ['192.168.0.0/24', '192.168.1.0/24', '!192.168.0.7'],
    Partners: ['203.0.113.5'],
  },
  services: { worker: { windows_services: [{ process_name: 'c:\\w3wp.exe', port: 8080, proto: 6 }] } },
  ruleSets: [
    {
      name: '=Pay',
      scope: 'app=pay env=prod',
      allow: [
        { from: 'iplist:Office', to: 'role=web', services: [TCP(443), { port: 8000, to_port: 8009, proto: 6 }] },
        { from: 'role=web', to: 'role=db', services: [TCP(5432), 'worker'] },
        { from: 'ams', to: 'iplist:Partners', services: [TCP(443)] },
      ],
      override: [
        { from: 'app=shop env=prod', to: 'ams', services: [{ proto: 1, icmp_type: 8 } as never], extra: true },
      ],
    },
    { name: 'Off', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams', enabled: false }] },
  ],
})

const without = (rows: Json[]) => rows.map(({ href: _href, rule_set: _set, ...row }) => row)
const PAY = { application: 'pay|prod' }

t.test('rules of an application are rows of addresses and ports, in the order in which they decide', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await bench.ok('resolve-policy', PAY)
  t.same(without(answer.rules), [
    {
      action: 'override_deny',
      direction: 'inbound',
      source: ['10.0.1.1'],
      destination: ['10.0.0.1-10.0.0.2', '10.0.0.9'],
      services: ['icmp type 8'],
    },
    {
      action: 'allow',
      direction: 'inbound',
      source: ['192.168.0.0-192.168.0.6', '192.168.0.8-192.168.1.255'],
      destination: ['10.0.0.1-10.0.0.2'],
      services: ['443/tcp', '8000-8009/tcp'],
    },
    {
      action: 'allow',
      direction: 'both',
      source: ['10.0.0.1-10.0.0.2'],
      destination: ['10.0.0.9'],
      services: ['5432/tcp'],
    },
    {
      action: 'allow',
      direction: 'both',
      source: ['10.0.0.1-10.0.0.2'],
      destination: ['10.0.0.9'],
      services: ['8080/tcp'],
      only: ['the program "c:\\\\w3wp.exe"'],
    },
    {
      action: 'allow',
      direction: 'outbound',
      source: ['10.0.0.1-10.0.0.2', '10.0.0.9'],
      destination: ['203.0.113.5'],
      services: ['443/tcp'],
    },
  ])
  const { rules: _rows, how_to_read: how, ...facts } = answer
  t.same(facts, {
    summary:
      '5 rows of 4 rules of the active policy (version 1) about "app=pay" and "env=prod" at 3 workloads, by the labels and addresses of now.',
    policy_version: '1',
    workloads: { total: 3, modes: { full: 2, selective: 1 }, address_ranges: 2 },
    rules_total: 4,
    rows_total: 5,
    rows_by: { 'override_deny inbound': 1, 'allow inbound': 1, 'allow both': 2, 'allow outbound': 1 },
    not_resolved: [
      {
        what: 'offline',
        count: 1,
        examples: ['pay-2'],
        means: 'their last addresses are in the rows; the PCE takes them out of policy while they are offline (P119)',
      },
      {
        what: 'conditions',
        count: 1,
        means: 'rules that match only users, programs, machines or networks, or whose services are not known; see only',
      },
    ],
    truncated: false,
  })
  t.match(how, /^The first that applies decides: .*override_deny, allow, deny/)
})

t.test('CSV has the same rows, quoted, and nothing in it is a formula', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await bench.ok('resolve-policy', { rule_set: '=Pay', csv: true, policy_version: 'draft' })
  t.equal(answer.rules, undefined)
  t.ok(answer.csv.endsWith('\r\n'))
  const lines: string[] = answer.csv.trimEnd().split('\r\n')
  t.equal(
    lines[0],
    'action,direction,source,destination,services,only,besides,enforced_by,rule_set,rule,href,about,policy_version,resolved_at,row',
  )
  t.equal(
    lines[2],
    `allow,inbound,"192.168.0.0-192.168.0.6; 192.168.0.8-192.168.1.255",10.0.0.1-10.0.0.2,"443/tcp; 8000-8009/tcp",,,"full: 1; selective: 1",'=Pay,"Office to role=web, 443/tcp + 8000-8009/tcp",/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1,"rule set ""=Pay""",draft,2026-06-15T12:00:00.000Z,2 of 5`,
  )
  t.equal(lines.length, answer.rows_total + 1)
  const few = await bench.ok('resolve-policy', { rule_set: '=Pay', csv: true, fields: ['destination', 'source'] })
  t.same(few.csv.split('\r\n').slice(0, 2), [
    'action,source,destination,only,besides,about,policy_version,resolved_at,row',
    'override_deny,10.0.1.1,"10.0.0.1-10.0.0.2; 10.0.0.9",,,"rule set ""=Pay""",1,2026-06-15T12:00:00.000Z,1 of 5',
  ])
})

t.test('a CSV file says which policy it shows, of when, and whether rows are missing in it', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const file: string[] = []
  let cursor: string | undefined
  do {
    const args = { ...PAY, csv: true, direction: 'inbound', fields: ['enforced_by'], max_results: 3 }
    const page: Json = await bench.ok('resolve-policy', { ...args, ...(cursor && { cursor }) })
    file.push(...page.csv.trimEnd().split('\r\n').slice(1))
    cursor = page.next_cursor
  } while (cursor !== undefined)
  const end = (row: number) => `"""app=pay"" and ""env=prod"", inbound only",1,2026-06-15T12:00:00.000Z,${row} of 4`
  t.same(file, [
    `override_deny,,,"full: 2; selective: 1",${end(1)}`,
    `allow,,,"full: 1; selective: 1",${end(2)}`,
    // The same at either end: these are the workloads of both.
    `allow,,,"full: 2; selective: 1",${end(3)}`,
    `allow,"the program ""c:\\\\w3wp.exe""",,"full: 2; selective: 1",${end(4)}`,
  ])
  const { rules } = await bench.ok('resolve-policy', { ...PAY, detail_level: 'full' })
  t.same(
    rules.map(({ enforced_by: modes }: Json) => modes),
    [
      { full: 2, selective: 1 },
      { full: 1, selective: 1 },
      { full: 2, selective: 1 },
      { full: 2, selective: 1 },
      { full: 2, selective: 1 },
    ],
    'with detail full, JSON has the modes as well',
  )
})

t.test('a line break in a name begins no row of the CSV', async (t) => {
  const estate = structuredClone(ESTATE)
  estate.ruleSets[0]!.name = 'Pay "\r\n1\r\n'
  const bench = await startBench(t, { estate })
  const { csv, rows_total: total } = await bench.ok('resolve-policy', { ...PAY, csv: true, fields: ['rule_set'] })
  const line = ',,,"Pay ""⟨U+000D⟩⟨U+000A⟩1⟨U+000D⟩⟨U+000A⟩",'
  const [header, ...lines]: string[] = csv.split('\r\n')
  t.equal(header, 'action,only,besides,rule_set,about,policy_version,resolved_at,row')
  t.ok(lines[0]!.startsWith(`override_deny${line}`))
  t.ok(lines[1]!.startsWith(`allow${line}`))
  t.equal(csv.split('\r\n').length, total + 2)
})

t.test('rows of one direction are those enforced there, and those that are the same at either end', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const all = await bench.ok('resolve-policy', PAY)
  for (const [direction, count] of [
    ['inbound', 4],
    ['outbound', 3],
  ] as const) {
    const answer = await bench.ok('resolve-policy', { ...PAY, direction })
    t.same(
      answer.rules,
      all.rules.filter((row: Json) => row.direction === direction || row.direction === 'both'),
    )
    t.equal(answer.rows_total, count)
    t.ok(answer.summary.startsWith(`${count} ${direction} rows of `), answer.summary)
  }
  const none = await bench.ok('resolve-policy', { labels: ['app=shop'], direction: 'inbound' })
  t.equal(none.summary, 'No inbound rule of the active policy (version 1) in force is about "app=shop" at 1 workload.')
})

t.test('what is no address is said with the rule, whatever fields were asked for, and counted', async (t) => {
  const estate: Estate = structuredClone(ESTATE)
  const [set] = estate.ruleSets as unknown as Json[]
  const office = (estate.ipLists as unknown as Json[]).find(({ name }) => name === 'Office')
  office.fqdns = [{ fqdn: '*.office.example' }]
  set.rules[1].consuming_security_principals = [{ href: '/orgs/1/security_principals/1' }]
  set.rules[2].consumers = [{ workload: { href: (estate.workloads as Json[])[3].href } }]
  set.scopes = [[]]
  ;(estate.workloads as Json[])[3].interfaces = []
  const bench = await startBench(t, { estate })
  const answer = await bench.ok('resolve-policy', {
    rule_set: '=Pay',
    fields: ['direction', 'source'],
  })
  t.same(answer.rules, [
    {
      action: 'allow',
      direction: 'inbound',
      source: ['192.168.0.0-192.168.0.6', '192.168.0.8-192.168.1.255'],
      besides: ['from the domain names "*.office.example" of IP list "Office"'],
    },
    {
      action: 'allow',
      direction: 'both',
      source: ['10.0.0.1-10.0.0.2'],
      only: ['only users of /orgs/1/security_principals/1'],
    },
    {
      action: 'allow',
      direction: 'both',
      source: ['10.0.0.1-10.0.0.2'],
      only: ['only users of /orgs/1/security_principals/1', 'the program "c:\\\\w3wp.exe"'],
    },
  ])
  t.same(
    answer.not_resolved.map(({ what, count }: Json) => [what, count]),
    [
      ['without_address', 1],
      ['offline', 1],
      ['domain_names', 1],
      ['conditions', 1],
    ],
  )
})

t.test('a past version has its rules of then, and a version that is not there is an error', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const rule = '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1'
  await bench.pce.delete(rule, { includeOrg: false })
  const counts = async (version: string | number) =>
    (await bench.ok('resolve-policy', { ...PAY, policy_version: version })).rows_by['allow inbound'] ?? 0
  t.equal(await counts('active'), 1)
  t.equal(await counts('draft'), 0)
  await bench.pce.provisionPolicyChanges('Less', ['/orgs/1/sec_policy/draft/rule_sets/1'])
  t.equal(await counts('active'), 0)
  t.equal(await counts(1), 1)
  await bench.fails('resolve-policy', { ...PAY, policy_version: 9 }, 'not_found')
})

t.test('many addresses are several rows, and pages have each of them once', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 130 }, (_, at) => [`web-${at}`, { ip: `10.1.${at}.7`, labels: 'app=web env=prod' }]),
  )
  const ruleSets = [
    { name: 'Web', scope: 'app=web env=prod', allow: [{ from: 'ams', to: 'ams', services: [TCP(22)] }] },
  ]
  const bench = await startBench(t, { estate: handMade({ hosts, ruleSets }) })
  const pairs = new Set<string>()
  let [cursor, pages, total]: [string | undefined, number, number] = [undefined, 0, 0]
  do {
    const page: Json = await bench.ok('resolve-policy', { labels: ['app=web'], ...(cursor && { cursor }) })
    t.ok(Buffer.byteLength(JSON.stringify(page)) <= 6_000, 'small by default')
    for (const { source, destination } of page.rules)
      for (const from of source) for (const to of destination) pairs.add(`${from} ${to}`)
    ;[cursor, pages, total] = [page.next_cursor, pages + 1, total + page.rules.length]
    if (cursor === undefined) t.equal(total, page.rows_total)
  } while (cursor !== undefined)
  t.equal(pairs.size, 130 * 130)
  const { csv }: Json = await bench.ok('resolve-policy', { labels: ['app=web'], csv: true, detail_level: 'full' })
  const line = csv.split('\r\n')[1]
  t.ok(line.length > 1_000 && line.endsWith(',1 of 9'), 'no line is clipped')
  t.equal(total, 9)
  t.ok(pages > 1)
})

t.test('a subject that is none, or two, or unknown is an error that names the argument', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  await bench.fails('resolve-policy', {}, 'missing_identifier')
  await bench.fails('resolve-policy', { ...PAY, rule_set: '=Pay' }, 'conflicting_identifiers')
  const twice = await bench.fails('resolve-policy', { labels: ['app=pay', 'app=shop'] }, 'invalid_argument')
  t.equal(twice.argument, 'labels')
  await bench.fails('resolve-policy', { labels: ['app=payy'] }, 'unresolved_label_filter')
  const near = await bench.fails('resolve-policy', { rule_set: 'Pay' }, 'not_found')
  t.same([near.argument, near.near_names], ['rule_set', ['=Pay']])
  const lonely = await bench.ok('resolve-policy', { labels: ['role=db'], policy_version: 'draft' })
  t.equal(lonely.rows_by['allow outbound'], 1)
  const office = await bench.ok('resolve-policy', { rule_set: 'Off' })
  t.equal(office.summary, 'No rule of the active policy (version 1) in force is about rule set "Off".')
})
