import t from 'tap'
import { partial } from '../partial.js'
import { clientOf, startServer, type Reply, type Responder } from './support.js'

/* Answers that are not what the operation gives: by status alone, in buckets, too large. */

let respond: Responder = () => ({})
const server = await startServer(t, (seen, index) => respond(seen, index))

function setup(answer: Responder | Reply, options: Parameters<typeof clientOf>[1] = {}) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server, options)
}

t.test("what the PCE's status means", async (t) => {
  t.strictSame(await setup({}).getNodeAvailable(), { available: true })
  t.strictSame(server.requests(), ['GET /node_available'])
  t.strictSame(await setup({ status: 202 }).getNodeAvailable(), { available: true }, 'healthy too')
  t.strictSame(await setup({ body: '<no json' }).getNodeAvailable(), { available: true }, 'whatever the body')
  t.strictSame(await setup({ status: 404 }).getNodeAvailable(), { available: false })
  t.equal(server.seen.length, 1)
  t.strictSame(await setup({ status: 502 }, { retryCount: 2 }).getNodeAvailable(), { available: false })
  t.equal(server.seen.length, 3, 'a load balancer’s 502 counts once the retries are over')
  for (const status of [401, 403, 500, 503]) {
    const call = setup({ status }, { retryCount: 0 }).getNodeAvailable()
    await t.rejects(call, { name: 'PceApiError', status }, `${status} decides nothing`)
  }
  await t.rejects(setup({ breaks: true }, { retryCount: 0 }).getNodeAvailable(), { code: 'unreachable' })

  t.strictSame(await setup({ status: 202 }).getSuperclusterLeader(), { leader: true })
  t.strictSame(server.requests(), ['GET /supercluster/leader'])
  t.strictSame(await setup({ status: 404 }).getSuperclusterLeader(), { leader: false })
  await t.rejects(setup({ status: 502 }, { retryCount: 0 }).getSuperclusterLeader(), {
    name: 'PceApiError',
    status: 502,
  })
})

t.test('a rule search', async (t) => {
  const rule = (kind: string, id: number, more: object = {}) => ({
    href: `/orgs/1/sec_policy/draft/rule_sets/3/${kind}/${id}`,
    enabled: true,
    rule_set: { href: '/orgs/1/sec_policy/draft/rule_sets/3', name: 'ERP' },
    ...more,
  })
  const allow = rule('sec_rules', 1)
  const deny = rule('deny_rules', 2)
  const override = rule('deny_rules', 3, { override: true })
  const tables = rule('ip_tables_rules', 4)
  const found = [
    { ...allow, rule_type: 'sec_rules' },
    { ...deny, rule_type: 'deny_rules' },
    { ...override, rule_type: 'override_deny_rules' },
    { ...tables, rule_type: 'ip_tables_rules' },
  ]
  const criteria = { description: 'x', rule_types: ['sec_rules'] as const }
  const client = setup({
    body: {
      sec_rules: [allow],
      deny_rules: [deny],
      override_deny_rules: [override],
      ip_tables_rules: [tables],
      counts: { sec_rules: { matched: 1, total: 9 } },
    },
  })
  t.strictSame(await client.searchRules(criteria), found, 'is one list that names the types')
  t.strictSame(server.requests(), ['POST /orgs/1/sec_policy/draft/rule_search'])
  t.strictSame(JSON.parse(server.seen[0]?.body ?? ''), criteria)
  await client.searchRules({}, 'active')
  t.strictSame(server.requests()[1], 'POST /orgs/1/sec_policy/active/rule_search')

  t.strictSame(
    await setup({ body: [allow, deny, override, tables] }).searchRules({}),
    found,
    'of older releases that answer a list, too',
  )
  const later = { sec_rules: null, novel_rules: [rule('novel_rules', 5)] }
  partial(
    t,
    await setup({ body: later }).searchRules({}),
    [{ rule_type: 'novel_rules' }],
    'keeps types of later releases',
  )
  for (const body of ['', 'null', '7', '{"error":"busy"}'])
    await t.rejects(setup({ body }).searchRules({}), { code: 'invalid_response' }, `is not answered by ${body}`)
  const crowded: Responder = (_seen, index) => (index === 0 ? { status: 429 } : { body: [] })
  t.strictSame(await setup(crowded).searchRules({}), [], 'waits where too many searches run')
})

t.test('a list of something other than objects', async (t) => {
  const reads: ((client: ReturnType<typeof setup>) => Promise<unknown>)[] = [
    (client) => client.workloads.get(),
    (client) => client.workloads.getByName('x'),
    (client) => client.getDefaultService(),
    (client) => client.getVenStatistics(),
  ]
  for (const body of [[null], [1], ['x'], [[]], [{}, []]]) {
    for (const read of reads) await t.rejects(read(setup({ body })), { name: 'PceError', code: 'invalid_response' })
    await t.rejects(setup({ body }).workloads.bulkCreate([{}]), { name: 'PceError', code: 'outcome_unknown' })
    await t.rejects(setup({ body }).searchRules({}), { name: 'PceError', code: 'invalid_response' })
  }
  const failed = [{ href: '/orgs/1/workloads/a', errors: [{ token: '', message: '' }] }]
  const result = await setup({ body: [{ ...failed[0], errors: [null] }] }).workloads.bulkCreate([{}])
  t.strictSame(result, failed, 'an error that says nothing is one all the same')
})

t.test('a synchronous traffic query', async (t) => {
  const query = {
    start_date: '2026-02-22T00:00:00Z',
    end_date: '2026-03-01T00:00:00Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: 1000,
  }
  const flow = { src: { ip: '10.0.0.1' }, dst: { ip: '10.0.0.2' }, service: { port: 1, proto: 6 } }
  const path = '/orgs/1/traffic_flows/traffic_analysis_queries'
  const client = setup({ body: [flow] })
  t.strictSame(await client.getTrafficFlows(query), [flow])
  t.strictSame(server.requests(), [`POST ${path}`])
  t.strictSame(JSON.parse(server.seen[0]?.body ?? ''), query)
  t.equal(server.seen[0]?.headers.prefer, undefined)
  await client.getTrafficFlows({ ...query, query_name: 'q', max_results: undefined } as never)
  t.strictSame(
    JSON.parse(server.seen[1]?.body ?? ''),
    { ...query, max_results: 100_000 },
    'without a name, for as many rows as there may be',
  )

  const href = '/orgs/1/traffic_flows/async_queries/x'
  const large: Responder = (seen) => {
    if (seen.path === path) return { headers: { 'content-length': String(33 * 1024 * 1024) }, body: '[' }
    if (seen.method === 'POST') return { status: 202, body: { href, status: 'queued' } }
    return {
      body: seen.path.endsWith('/download') ? [flow, flow] : { href, status: 'completed', result: `${href}/download` },
    }
  }
  t.strictSame(await setup(large).getTrafficFlows(query), [flow, flow], 'too large an answer comes another way')
  t.strictSame(server.requests().slice(0, 4), [
    `POST ${path}`,
    'POST /orgs/1/traffic_flows/async_queries',
    `GET ${href}`,
    `GET ${href}/download`,
  ])
  t.strictSame(JSON.parse(server.seen[1]?.body ?? ''), { query_name: 'traffic analysis', ...query })
  await t.rejects(
    setup({ status: 406 }).getTrafficFlows(query),
    { name: 'PceApiError', status: 406 },
    'and nothing else does',
  )
  t.equal(server.seen.length, 1)
})

t.test('answers with nothing in them that was asked for', async (t) => {
  for (const body of [{ x: 1 }, { sec_rules: 7 }, { counts: {} }]) {
    const call = setup({ body }).searchRules({})
    await t.rejects(call, { code: 'invalid_response' }, `a rule search: ${JSON.stringify(body)}`)
  }
  t.strictSame(await setup({ body: { sec_rules: [], counts: {} } }).searchRules({}), [])
  const query = '/orgs/1/traffic_flows/async_queries/1'
  const download = setup(({ path }) => {
    if (path.endsWith('/download')) return { body: [null, {}] }
    return { body: { href: query, status: 'completed', result: `${query}/download` } }
  })
  const none = { code: 'invalid_response', message: 'none of the 2 rows that the PCE answered is a flow' }
  await t.rejects(download.getTrafficFlowsAsync('x', {} as never), none, 'flows')
  for (const body of [[null], [[]], [7], { errors: [null] }]) {
    const call = setup({ body }).venRemoteAction(['/orgs/1/vens/1'], 'restart')
    await t.rejects(call, { code: 'outcome_unknown' }, `an action: ${JSON.stringify(body)}`)
  }
})
