/** identity-reach: what accounts reach, whom they are merged with, and whose they are, in an estate whose answer is known. */
import t, { type Test } from 'tap'
import { classifyAccount, type AccountUse } from '../../domain/traffic/classify-account.js'
import { mergeAccounts } from '../../domain/traffic/merge-accounts.js'
import { parseAccount } from '../../domain/traffic/parse-account.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeFlow, type HandMadeHost } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const TOOL = 'identity-reach'
const HOSTS: Record<string, HandMadeHost> = {
  'desk-1': { ip: '10.1.0.1', labels: 'app=desk env=prod' },
  'desk-2': { ip: '10.1.0.2', labels: 'app=desk env=prod' },
  laptop: { ip: '10.1.0.3', labels: 'app=users env=prod', endpoint: true },
  pay: { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
  web: { ip: '10.0.0.2', labels: 'app=web env=prod' },
  bare: { ip: '10.0.0.3' },
  nas: { ip: '10.0.0.4', labels: 'app=nas env=prod', managed: false },
}
const start = (t: Test, flows: HandMadeFlow[]) =>
  startBench(t, {
    estate: handMade({
      hosts: HOSTS,
      flows,
      ruleSets: [
        {
          name: 'pay',
          scope: 'app=pay env=prod',
          allow: [{ from: 'app=desk', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
        },
      ],
    }),
  })
const ada = (to: string, more: Partial<HandMadeFlow> = {}): HandMadeFlow => ({
  from: 'desk-1',
  to,
  user: 'CORP\\ada',
  ...more,
})

t.test('what one account reaches', async (t) => {
  const bench = await start(t, [
    ada('pay', { connections: 9, process: '/usr/bin/curl' }),
    ada('pay', { port: 22, connections: 50 }),
    ada('web', { connections: 5 }),
    ada('web', { port: 8080, connections: 7, from: 'desk-2' }),
    ada('web', { proto: 1, connections: 1 }),
    ada('bare', { port: 22, connections: 2 }),
    ada('nas', { port: 445, connections: 3 }),
    ada('192.0.2.1', { connections: 4 }),
    ada('192.0.2.2', { connections: 6, fqdn: 'files.example' }),
    { from: 'desk-1', to: 'web', user: 'other' },
    { from: 'desk-1', to: 'web', port: 81, connections: 11 },
    { from: 'web', to: 'desk-1', user: 'CORP\\ada', direction: 'inbound', connections: 70 },
    { from: '198.51.100.1', to: 'web', port: 82, user: 'CORP\\ada', connections: 8 },
  ])
  const answer = await bench.ok(TOOL, { account: 'corp\\Ada' })
  t.same(answer.people, [
    {
      account: 'CORP\\ada',
      type: 'interactive',
      certain: false,
      why: 'an account of a directory without any mark of a service',
      inside: 4,
      applications: 3,
      hosts: 1,
      external: 2,
      ports: 5,
      from_hosts: 2,
      connections: 87,
      blocked_connections: 50,
      processes: ['curl'],
      reaches: [
        { to: 'pay (prod)', ports: ['22/tcp', '443/tcp'], connections: 59, policy: 'blocked+allowed' },
        {
          to: 'web (prod)',
          ports: ['8080/tcp', '443/tcp', 'icmp'],
          connections: 13,
          policy: 'potentially_blocked',
        },
        { to: 'nas (prod)', ports: ['445/tcp'], connections: 3, policy: 'potentially_blocked' },
        { to: 'bare', ports: ['22/tcp'], connections: 2, policy: 'potentially_blocked' },
      ],
      reaches_external: [
        { to: 'files.example', ports: ['443/tcp'], connections: 6, policy: 'potentially_blocked' },
        {
          to: '192.0.2.1 (Any (0.0.0.0/0 and ::/0))',
          ports: ['443/tcp'],
          connections: 4,
          policy: 'potentially_blocked',
        },
      ],
    },
  ])
  t.equal(
    answer.summary,
    'Account "CORP\\\\ada" (probably interactive): 3 applications, 1 other host and 2 external destinations from 2 hosts.',
  )
  t.same(answer.without_account, { rows: 1, connections: 11 })
  t.same(answer.of_listeners, { rows: 2, connections: 78 }, 'their account is that of who listens')
  t.same(answer.undirected, { rows: 0, connections: 0 })
  partial(t, answer, { people_total: 1, analysed: { rows: 13 }, flows_truncated: false })
})

t.test('what policy blocks is no reach, whatever was recorded', async (t) => {
  const bench = await start(t, [ada('pay', { port: 22, recorded: 'allowed', connections: 2 })])
  const { people } = await bench.ok(TOOL)
  partial(t, people[0], { applications: 0, ports: 0, connections: 2, blocked_connections: 2 })
  t.same(people[0].reaches, [{ to: 'pay (prod)', ports: ['22/tcp'], connections: 2, policy: 'blocked' }])
})

t.test('the widest first, by applications and hosts, then ports', async (t) => {
  const of = (user: string, to: string, port = 443): HandMadeFlow => ({ from: 'desk-1', to, port, user })
  const bench = await start(t, [
    ...['web', 'bare', 'nas'].map((to) => of('a', to)),
    ...['web', 'bare'].flatMap((to) => [of('b', to), of('b', to, 80)]),
    ...['web', 'bare'].map((to) => ({ ...of('c', to), connections: 50 })),
    ...['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((to) => of('d', to)),
    { ...of('svc-e', 'web'), connections: 999 },
  ])
  const answer = await bench.ok(TOOL)
  t.same(
    answer.people.map(({ account }: Json) => account),
    ['a', 'b', 'c', 'svc-e', 'd'],
  )
  t.same(
    answer.people.map(({ inside }: Json) => inside),
    [3, 2, 2, 1, 0],
  )
  t.equal(
    answer.summary,
    'Of 5 accounts, "a" (unknown type) reaches most inside, 3: 2 applications, 1 other host and 0 external destinations from 1 host. Most external destinations: "d" (3).',
  )
  const two = await bench.ok(TOOL, { limit: 2 })
  t.same([two.people.length, two.people_total], [2, 5])
  t.equal(two.truncation_note, '2 of 5 are shown. Raise limit.')
  t.match(two.summary, /from 1 host\. Most external/, 'none reaches as much')
  const services = await bench.ok(TOOL, { type: 'service' })
  t.same(
    services.people.map(({ account }: Json) => account),
    ['svc-e'],
  )
  t.match(services.summary, /^Of 1 account \(of 5 in the window\), "svc-e" /)
  t.same(services.by_type, { service: 1, interactive: 0, unknown: 4, certain_service: 0 })
})

t.test('accounts that reach as much as the widest are named, or counted', async (t) => {
  const of = (user: string): HandMadeFlow => ({ from: 'desk-1', to: 'web', user })
  const summaryOf = async (users: string[]) => (await (await start(t, users.map(of))).ok(TOOL)).summary
  t.match(await summaryOf(['a', 'b']), /^Of 2 accounts, "a" .* from 1 host\. Just as many: "b"\.$/)
  t.match(await summaryOf(['a', 'b', 'c']), / from 1 host\. Just as many: "b" and "c"\.$/)
  t.match(await summaryOf(['a', 'b', 'c', 'd']), / from 1 host\. Just as many: 3 others\.$/)
})

t.test('forms of one account count together, and the answer says how', async (t) => {
  const users = ['CORP\\ada', 'corp\\ADA', 'ada@corp.example', 'ada']
  const bench = await start(
    t,
    users.map((user, at) => ({ from: 'desk-1', to: 'web', port: 1000 + at, user, connections: 10 - at })),
  )
  const answer = await bench.ok(TOOL, { account: 'ada' })
  t.equal(answer.people_total, 1)
  partial(t, answer.people[0], { account: 'CORP\\ada', ports: 4, connections: 34, spellings: ['corp\\ADA'] })
  t.same(answer.people[0].may_be_same, [
    { account: 'ada@corp.example', connections: 8, why: '"corp.example" may be "corp" in another form' },
    { account: 'ada', connections: 7, why: 'the name alone, and no other realm has it' },
  ])
  t.ok(answer.notes.includes('1 account counts others along that only may be the same (may_be_same).'))
  for (const account of ['ADA@corp.example', 'CORP\\Ada'])
    t.equal((await bench.ok(TOOL, { account })).people[0].account, 'CORP\\ada')
  for (const account of ['LAB\\ada', 'ad', 'ada@example'])
    t.same((await bench.ok(TOOL, { account })).people, [], account)
})

t.test('accounts of one name in several realms stay apart', async (t) => {
  const users = ['CORP\\ada', 'LAB\\ada', 'ada', 'DESK-1\\ada']
  const bench = await start(
    t,
    users.map((user, at) => ({ from: 'desk-1', to: 'web', port: 1000 + at, user })),
  )
  const answer = await bench.ok(TOOL)
  t.equal(answer.people_total, 4)
  const alone = await bench.ok(TOOL, { account: 'ada' })
  t.same(
    alone.people.map(({ account, not_merged: others, connections }: Json) => [account, connections, others]),
    [['ada', 1, ['CORP\\ada', 'DESK-1\\ada', 'LAB\\ada']]],
    'the exact account, and whom it may be',
  )
  const one = await bench.ok(TOOL, { account: 'LAB\\ada' })
  t.same([one.people_total, one.people[0].connections], [1, 1])
})

t.test('an account that no row names', async (t) => {
  const bench = await start(t, [ada('web')])
  const answer = await bench.ok(TOOL, { account: 'CORP\\adda' })
  t.same([answer.people, answer.near_names], [[], ['CORP\\ada']])
  t.equal(answer.summary, 'No account "CORP\\\\adda" among the 1 that sources reported in the window.')
  t.equal((await bench.fails(TOOL, { account: ' ' }, 'invalid_argument')).argument, 'account')
  const none = await (await start(t, [])).ok(TOOL)
  t.equal(none.summary, 'No account among the 0 that sources reported in the window.')
})

t.test('large answers are cut to 8,000 bytes, and one account shows more', async (t) => {
  const flows = Array.from({ length: 40 }, (_, at) =>
    ['192.0.2', '198.51.100'].map((net) => ({ from: 'desk-1', to: `${net}.${at}`, user: `CORP\\user-${at}` })),
  ).flat()
  const many = Array.from({ length: 40 }, (_, at) => ada(`203.0.113.${at}`))
  const bench = await start(t, [...flows, ...many])
  const answer = await bench.ok(TOOL, { limit: 41 })
  t.ok(Buffer.byteLength(JSON.stringify(answer)) <= 8000, `${JSON.stringify(answer).length} bytes`)
  t.ok(answer.people.length < 41 && answer.people_total === 41, `${answer.people.length} of 41`)
  t.match(answer.truncation_note, /^\d+ of 41 are shown\. detail_level full shows more\.$/)
  t.equal(answer.people[0].reaches_external.length, 5)
  const full = await bench.ok(TOOL, { limit: 41, detail_level: 'full' })
  t.equal(full.people.length, 41)
  const one = await bench.ok(TOOL, { account: 'CORP\\ada' })
  t.equal(one.people[0].reaches_external.length, 25)
  t.same(
    [one.people[0].reaches_external_total, one.truncated_sections, one.truncation_note],
    [40, ['reaches_external'], 'reaches_external shows 25 of 40: detail_level full shows more.'],
  )
  t.equal((await bench.ok(TOOL, { account: 'CORP\\ada', detail_level: 'full' })).people[0].reaches_external.length, 40)
  const error = await bench.cancelled(TOOL, {}, ({ message = '' }) => message.includes('rows read'))
  t.equal(error.error, 'cancelled')
})

const NO_USE: AccountUse = { programs: [], windowsServices: [], onEndpoint: false }
t.test('services and people are told apart, and what is certain', async (t) => {
  const told = (text: string, use: Partial<AccountUse> = {}) => {
    const { type, isCertain, why } = classifyAccount(parseAccount(text), { ...NO_USE, ...use })
    return `${isCertain ? 'certainly ' : ''}${type}: ${why}`
  }
  for (const [text, wanted] of [
    ['NT AUTHORITY\\SYSTEM', 'certainly service: nt authority is a realm of Windows itself'],
    ['AUTORITE NT\\Système', 'certainly service: autorite nt is a realm of Windows itself'],
    ['NT SERVICE\\MSSQLSERVER', 'certainly service: nt service is a realm of Windows itself'],
    ['system', 'certainly service: built into Windows'],
    ['CORP\\WEB01$', 'certainly service: ends in $: a computer or a managed service account'],
    ['S-1-5-18', 'certainly service: the identifier of a service or built-in account of Windows'],
    ['S-1-5-21-1-2-3-1104', 'unknown: neither name nor programs tell'],
    ['root', 'service: root, mostly daemons, though a person may work as root'],
    ['postgres', 'service: the usual name of a daemon'],
    ['_apt', 'service: begins with _, as system accounts do'],
    ['CORP\\svc-backup', 'service: named like a service (svc)'],
    ['svcbackup@corp.example', 'service: named like a service (svc)'],
    ['CORP\\sasha', 'interactive: an account of a directory without any mark of a service'],
    ['ada', 'unknown: neither name nor programs tell'],
    ['Administrator', 'interactive: the administrator, as whom people log in'],
  ] as const)
    t.equal(told(text), wanted, text)
  t.equal(told('ada', { programs: ['bash', 'Chrome.exe'] }), 'interactive: works with "Chrome.exe"')
  t.equal(told('ada', { onEndpoint: true }), 'interactive: seen on an endpoint')
  t.equal(told('root', { onEndpoint: true }), 'service: root, mostly daemons, though a person may work as root')
  t.equal(told('CORP\\ada', { windowsServices: ['Spooler'] }), 'service: runs the Windows service "Spooler"')
  t.equal(
    told('CORP\\svc-web', { programs: ['mstsc.exe'] }),
    'unknown: named like a service (svc), but works with "mstsc.exe"',
  )
})

t.test('which accounts are merged', async (t) => {
  const merged = (texts: string, hosts: string[] = []) =>
    mergeAccounts(texts.split(' ').map(parseAccount), hosts).map(({ main, spellings, aliases }) =>
      [main.text, ...spellings.map(({ text }) => `=${text}`), ...aliases.map(({ account }) => `~${account.text}`)].join(
        ' ',
      ),
    )
  for (const [texts, wanted] of [
    ['A\\u a\\U', ['A\\u =a\\U']],
    ['u U', ['u ~U']],
    ['u@x.y U@X.Y', ['u@x.y =U@X.Y']],
    ['u A\\u', ['A\\u ~u']],
    ['A\\u u@a.x', ['A\\u ~u@a.x']],
    ['A\\u u@b.x', ['A\\u', 'u@b.x']],
    ['u@a.x u@a.y', ['u@a.x', 'u@a.y']],
    ['A\\u u@a.x u@a.y u', ['A\\u', 'u@a.x', 'u@a.y', 'u']],
    ['A\\u B\\u u', ['A\\u', 'B\\u', 'u']],
    ['.\\u u', ['.\\u =u']],
    ['A\\ u@ @u \\u', ['A\\', 'u@', '@u', '\\u']],
    ['a.x\\u u@a.x', ['a.x\\u ~u@a.x']],
  ] as const)
    t.same(merged(texts), wanted, texts)
  t.same(merged('PC-1\\u u', ['pc-1.corp.example']), ['PC-1\\u', 'u'], 'a local account is nobody else')
  t.same(merged('PC-1\\u u@pc-1.x', ['pc-1']), ['PC-1\\u', 'u@pc-1.x'])
  t.same(merged('PC-1\\u u'), ['PC-1\\u ~u'])
})
