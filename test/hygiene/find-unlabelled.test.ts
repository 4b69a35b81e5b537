/** find-unlabelled-workloads over a small estate: who lacks what, what it may be and why, and labels that look alike. */
import t from 'tap'
import { handMade, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Json } from '../tools/harness.js'

const ESTATE = handMade({
  hosts: {
    'pay-web-1': { ip: '10.0.1.1', labels: 'app=pay env=prod role=web loc=here' },
    'pay-web-2': { ip: '10.0.1.2', labels: 'app=pay env=prod role=web loc=here' },
    'pay-web-3': { ip: '10.0.1.3', labels: 'app=pay env=prod role=web loc=here' },
    'pay-db-1': { ip: '10.0.1.4', labels: 'app=pay env=prod role=db loc=here' },
    'crm-dev-1': { ip: '10.0.2.1', labels: 'app=crm env=dev role=web loc=there' },
    'crm-dev-0': { ip: '10.0.2.3', labels: 'app=crm env=dev role=web loc=there' },
    'crm-dev-2': { ip: '10.0.2.2', labels: 'app=crm env=dev role=web loc=there' },
    // All of its kind are web, in one subnet; its peers are pay.
    'pay-web-4': { ip: '10.0.1.9', labels: 'env=prod' },
    // By its name one of crm, by its address one of pay.
    'crm-dev-3': { ip: '10.0.1.77', labels: 'role=web loc=here' },
    // Its name holds a value; two others are no crowd.
    'x7-dev': { ip: '10.9.0.1', labels: 'role=web app=crm loc=there' },
    // Nothing speaks for anything: it talks to dev alone, which alone is weak.
    lonely: { ip: '10.8.0.1', managed: false, labels: 'role=web app=crm loc=there' },
  },
  flows: [
    { from: 'pay-web-4', to: 'pay-db-1', port: 5432 },
    { from: 'pay-web-1', to: 'pay-web-4' },
    { from: 'crm-dev-1', to: 'lonely' },
    { from: 'crm-dev-2', to: 'lonely' },
    { from: 'crm-dev-0', to: 'lonely' },
    { from: 'lonely', to: '198.51.100.7' },
  ],
  labels: ['env=test'],
})

const found = ({ workloads }: Json) =>
  Object.fromEntries(
    workloads.map(({ name, missing, suggestions }: Json) => [
      name,
      [
        missing.join(' '),
        ...suggestions.map(({ label, strength, because }: Json) => `${label} ${strength}: ${because.join('; ')}`),
      ],
    ]),
  )

t.test('who lacks what, and what it may be, with the evidence', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await bench.ok('find-unlabelled-workloads')
  t.equal(answer.summary, '4 of 11 workloads lack labels: 1 "role", 2 "app", 3 "env", 1 "loc".')
  t.same([answer.workloads_total, answer.total_count, answer.truncated], [11, 4, false])
  t.same(answer.missing_by_key, { role: 1, app: 2, env: 3, loc: 1 })
  t.same(found(answer), {
    'pay-web-4': [
      'role app loc',
      'role=web strong: names: 3 of 3 like "pay-web-#" have it, and this one holds "web"; addresses: 4 of 5 in 10.0.1.0/24 have it',
      'app=pay strong: names: 3 of 3 like "pay-web-#" have it, and this one holds "pay"; addresses: 4 of 4 in 10.0.1.0/24 have it; traffic: 2 of 2 workloads that it talks to have it',
      'loc=here strong: names: 3 of 3 like "pay-web-#" have it; addresses: 5 of 5 in 10.0.1.0/24 have it; traffic: 2 of 2 workloads that it talks to have it',
    ],
    'crm-dev-3': [
      'app env',
      'app=crm weak: names: 3 of 3 like "crm-dev-#" have it, and this one holds "crm"',
      'app=pay weak: addresses: 4 of 4 in 10.0.1.0/24 have it',
      'env=dev weak: names: 3 of 3 like "crm-dev-#" have it, and this one holds "dev"',
      'env=prod weak: addresses: 5 of 5 in 10.0.1.0/24 have it',
    ],
    'x7-dev': ['env', 'env=dev fair: names: 3 of 3 that hold "dev" have it, and this one holds "dev"'],
    lonely: ['env', 'env=dev weak: traffic: 3 of 3 workloads that it talks to have it'],
  })
  t.same(answer.look_alikes, [])
  t.same(bench.writes(), [], 'and nothing is written')
})

t.test('filters, keys, sources and pages', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const names = async (args: object) =>
    (await bench.ok('find-unlabelled-workloads', args)).workloads.map(({ name }: Json) => name)
  t.same(await names({ missing: ['app'] }), ['pay-web-4', 'crm-dev-3'])
  t.same(await names({ missing: ['app'], hostname: 'crm' }), ['crm-dev-3'])
  t.same(await names({ labels: ['app=crm'] }), ['x7-dev', 'lonely'])
  t.same(await names({ managed: false }), ['lonely'])
  const none = await bench.ok('find-unlabelled-workloads', { labels: ['app=pay'] })
  t.equal(none.summary, 'None of 4 workloads that match lacks "role", "app", "env", "loc".')
  const nobody = await bench.ok('find-unlabelled-workloads', { name: 'nobody' })
  t.equal(nobody.summary, 'No workload matches.')
  await bench.pce.workloads.create({ hostname: 'queue-1', interfaces: [{ name: 'eth0', address: '10.7.0.1' }] })
  const hidden = await bench.ok('find-unlabelled-workloads', { name: 'queue' })
  t.equal(hidden.summary, 'No workload matches. 1 matches by hostname, which consoles show where a name is unset.')
  t.equal((await bench.ok('get-workloads', { name: 'queue' })).message, hidden.summary)
  t.equal((await bench.ok('get-workloads', { name: 'nobody' })).message, 'No workload matches.')
  const [{ href }] = (await bench.ok('find-unlabelled-workloads', { hostname: 'queue' })).workloads
  await bench.pce.delete(href, { includeOrg: false })

  bench.simulator.clearRequests()
  const named = await bench.ok('find-unlabelled-workloads', { missing: ['app'], suggest_from: ['names'] })
  t.same(found(named)['crm-dev-3'], [
    'app',
    'app=crm fair: names: 3 of 3 like "crm-dev-#" have it, and this one holds "crm"',
  ])
  t.same(
    bench.simulator.requests.filter(({ path }) => path.includes('traffic_flows')),
    [],
  )

  const first = await bench.ok('find-unlabelled-workloads', { max_results: 3 })
  t.same([first.workloads.length, first.total_count, first.truncated], [3, 4, true])
  const second = await bench.ok('find-unlabelled-workloads', { max_results: 3, cursor: first.next_cursor })
  t.same(
    second.workloads.map(({ name }: Json) => name),
    ['lonely'],
  )
  t.equal(second.look_alikes, undefined, 'look-alikes stand on the first page alone')
  t.same(second.missing_by_key, first.missing_by_key, 'totals are of all pages')

  await bench.fails('find-unlabelled-workloads', { missing: ['apps'] }, 'not_found')
  await bench.fails('find-unlabelled-workloads', { labels: ['app=nothing'] }, 'unresolved_label_filter')
})

t.test('the strongest evidence of a page stands first, and the servers of a laptop say nothing of it', async (t) => {
  const endpoint = (name: string) =>
    ESTATE.workloads.map((workload) =>
      workload.name === name ? { ...workload, managed: true, ven: { ...pay.ven!, ven_type: 'endpoint' } } : workload,
    )
  const pay = ESTATE.workloads.find(({ name }) => name === 'pay-web-1')!
  const bench = await startBench(t, { estate: { ...ESTATE, workloads: endpoint('lonely').reverse() } })
  const names = async (args: object = {}) => {
    const answer = await bench.ok('find-unlabelled-workloads', args)
    return [answer, answer.workloads.map(({ name }: Json) => name)]
  }
  const [all, order] = await names()
  t.same(order, ['pay-web-4', 'x7-dev', 'crm-dev-3', 'lonely'], 'strong, fair, weak, none')
  t.same(found(all)['lonely'], ['env'])
  const [first, two] = await names({ max_results: 2 })
  const [, rest] = await names({ max_results: 2, cursor: first.next_cursor })
  t.same([...two, ...rest].sort(), [...order].sort(), 'each once, on whatever page')
})

t.test('without the traffic it says so, and does without', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  bench.simulator.faults.add({
    kind: 'status',
    path: '/orgs/1/traffic_flows/async_queries',
    method: 'POST',
    times: 9,
    status: 403,
  })
  const answer = await bench.ok('find-unlabelled-workloads')
  t.equal(answer.warnings.length, 1)
  t.match(answer.warnings[0], /^Their traffic could not be read, so the suggestions do without: /)
  t.same(found(answer)['lonely'], ['env'])
})

t.test('labels that look alike, and those that do not', async (t) => {
  const many = (value: string, count: number, at: number): [string, HandMadeHost][] =>
    Array.from({ length: count }, (_, n) => [`h${at}-${n}`, { ip: `10.${at}.0.${n + 1}`, labels: [`app=${value}`] }])
  const estate = handMade({
    hosts: Object.fromEntries([
      ...many('Payments', 1, 1),
      ...many('payments', 3, 2),
      ...many('point-of-sale', 2, 3),
      ...many('Point of Sale', 1, 4),
      ...many('ordering', 8, 5),
      ...many('odering', 2, 6),
      ...many('east', 4, 7),
      ...many('west', 4, 8),
      ...many('node1', 8, 9),
      ...many('dev', 8, 10),
    ]),
    labels: ['app=node2', 'app=dew', 'env=payments', 'app=ordering-api'],
  })
  const bench = await startBench(t, { estate })
  const { look_alikes: found, look_alikes_total: total } = await bench.ok('find-unlabelled-workloads', {
    suggest_from: [],
    max_results: 1,
  })
  t.same(
    found.map(({ key, differ_by: by, labels }: Json) =>
      [key, by, ...labels.map(({ value, workloads }: Json) => `${value} ${workloads}`)].join(' | '),
    ),
    [
      'app | case | payments 3 | Payments 1',
      'app | spacing | point-of-sale 2 | Point of Sale 1',
      'app | near | ordering 8 | odering 2',
    ],
  )
  t.equal(total, 3)
})

t.test('half of them are no majority', async (t) => {
  const hosts = Object.fromEntries(
    ['a', 'a', 'b', 'b'].map((role, at): [string, HandMadeHost] => [
      `srv-${at}`,
      { ip: `10.0.0.${at}`, labels: `app=pay env=prod loc=here role=${role}` },
    ]),
  )
  const subject = { ip: '10.0.0.9', labels: 'app=pay env=prod loc=here' }
  const bench = await startBench(t, { estate: handMade({ hosts: { ...hosts, 'srv-9': subject } }) })
  t.same(found(await bench.ok('find-unlabelled-workloads')), { 'srv-9': ['role'] })
})

t.test('with whom it talks says nothing of what it does', async (t) => {
  const labels = 'app=pay env=prod loc=here'
  const hosts: Record<string, HandMadeHost> = {
    'db-1': { ip: '10.0.0.1', labels: `${labels} role=db` },
    'db-2': { ip: '10.0.0.2', labels: `${labels} role=db` },
    client: { ip: '10.0.0.9', labels: 'env=prod loc=here' },
  }
  const flows = ['db-1', 'db-2'].map((to) => ({ from: 'client', to }))
  const bench = await startBench(t, { estate: handMade({ hosts, flows }) })
  const answer = await bench.ok('find-unlabelled-workloads', { suggest_from: ['traffic'] })
  t.same(found(answer), {
    client: ['role app', 'app=pay weak: traffic: 2 of 2 workloads that it talks to have it'],
  })
})

t.test('what exact leaves out is not counted', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await bench.ok('find-unlabelled-workloads', { name: 'pay-web', exact: true })
  t.same([answer.workloads_total, answer.total_count], [0, 0], 'four have it as a part of their names')
})
