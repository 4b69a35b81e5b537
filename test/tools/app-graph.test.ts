/** identify-infrastructure-services and detect-lateral-movement-paths, on estates whose right answers are known in full. */
import t, { type Test } from 'tap'
import { collectAppGraph, collectEdgePorts } from '../../domain/dependency-map/collect-app-graph.js'
import { searchMovement } from '../../domain/dependency-map/search-movement.js'
import { chooseSections } from '../../tools/answers/choose-sections.js'
import { MOVEMENT_PARTS, showMovement } from '../../tools/answers/dependency-map/show-movement.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeFlow, type HandMadeHost } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const INFRA = 'identify-infrastructure-services'
const LATERAL = 'detect-lateral-movement-paths'
const NOTHING_REACHED =
  'No flow leads from the start to another labelled application except what is blocked; hosts without app or env label are not followed.'

/** Hosts called `app/env`, one each, and flows between them as `a/env > b/env connections [port] [blocked]`. */
function estateOf(lines: string[], more: Partial<HandMadeEstate> = {}): HandMadeEstate {
  const hosts: Record<string, HandMadeHost> = {}
  const place = (name: string) => {
    const [app = '', env = ''] = name.split('/')
    hosts[name] ??= { ip: `10.0.0.${Object.keys(hosts).length + 1}`, labels: [`app=${app}`, `env=${env}`] }
    return name
  }
  const flows = lines.map((line): HandMadeFlow => {
    const [from = '', , to = '', connections = '1', port = '443'] = line.split(' ')
    return { from: place(from), to: place(to), connections: Number(connections), port: Number(port) }
  })
  return { ...more, hosts: { ...hosts, ...more.hosts }, flows: [...flows, ...(more.flows ?? [])] }
}
const start = (t: Test, estate: HandMadeEstate, more = {}): Promise<Bench> =>
  startBench(t, { estate: handMade(estate), ...more })

/** The decisions that the PCE was last asked for. */
const decisionsAsked = ({ simulator }: Bench): string[] =>
  (
    simulator.requests.findLast(({ method, path }) => method === 'POST' && path.endsWith('/async_queries'))!
      .body as Json
  ).policy_decisions
const seq = (length: number) => Array.from({ length }, (_, at) => at)

const WORKED = [
  'crm/Production > dns/Production 100 53',
  'pay/Production > dns/Production 80 53',
  'web/Staging > dns/Production 10 53',
  'crm/Production > pay/Production 40 8443',
  'mon/Production > crm/Production 5 9100',
  'mon/Production > pay/Production 5 9100',
  'mon/Production > web/Staging 5 9100',
]

t.test('infrastructure: the worked example', async (t) => {
  const bench = await start(t, estateOf(WORKED))
  const answer = await bench.ok(INFRA)
  t.same(
    answer.results.map((row: Json) => [
      row.app,
      row.infrastructure_score,
      row.tier,
      row.dominant_pattern,
      row.in_degree,
      row.out_degree,
      row.betweenness_centrality,
      row.consumer_ratio,
    ]),
    [
      ['dns', 100, 'Core Infrastructure', 'provider', 3, 0, 0.1667, 1],
      ['mon', 95.4, 'Core Infrastructure', 'consumer', 0, 3, 0.1667, 0],
      ['crm', 45.2, 'Standard Application', 'consumer', 1, 2, 0.0556, 0.33],
      ['pay', 44.8, 'Standard Application', 'provider', 2, 1, 0.0556, 0.67],
      ['web', 14.3, 'Standard Application', 'provider', 1, 1, 0.0556, 0.5],
    ],
  )
  partial(t, answer.results[0], {
    env: 'Production',
    is_production: true,
    inbound_connections: 190,
    outbound_connections: 0,
    total_connections: 190,
    unmanaged_sources: 0,
    top_ports: [{ port: 53, proto: 'tcp', connections: 190 }],
    consumed_by: ['crm|Production', 'pay|Production', 'web|Staging'],
    consumes: [],
  })
  partial(t, answer.summary, {
    total_flows_analyzed: 7,
    app_to_app_flows: 7,
    lookback_days: 90,
    unique_apps: 5,
    unique_app_to_app_edges: 7,
    min_connections_filter: 1,
    tier_counts: { core_infrastructure: 2, shared_service: 0, standard_application: 3 },
  })
  partial(t, answer, { results_total: 5, truncated: false, flows_truncated: false })
  t.match(
    answer.summary.recommendation,
    /2 infrastructure applications .* starting with "dns \(Production\)", "mon \(Production\)"\.$/,
  )
  t.same(decisionsAsked(bench), ['allowed', 'potentially_blocked', 'blocked'])
  partial(t, answer.window, { start: '2026-03-17T00:00:00Z', end: '2026-06-15T23:59:59Z' })

  await t.test('counts cover all applications, whatever top_n shows', async (t) => {
    const one = await bench.ok(INFRA, { top_n: 1 })
    t.equal(one.results.length, 1)
    partial(t, one, { results_total: 5, truncated: true, truncated_sections: ['results'] })
    t.same(one.summary.tier_counts, answer.summary.tier_counts)
  })

  await t.test('drops edges below min_connections, and nodes left without one', async (t) => {
    const busy = await bench.ok(INFRA, { min_connections: 40 })
    t.same(busy.results.map(({ app }: Json) => app).sort(), ['crm', 'dns', 'pay'])
    partial(t, busy.summary, { unique_apps: 3, unique_app_to_app_edges: 3, min_connections_filter: 40 })
    const none = await bench.ok(INFRA, { min_connections: 1000 })
    partial(t, none, { results: [], results_total: 0, message: /No pair of applications has 1000/ })
  })

  await t.test('the caller decides what counts as production', async (t) => {
    const other = await bench.ok(INFRA, { production_envs: ['STAGING'] })
    const scores = Object.fromEntries(other.results.map((row: Json) => [row.app, row.infrastructure_score]))
    t.same(scores, { dns: 50, mon: 47.7, web: 28.5, crm: 22.6, pay: 22.4 })
    t.equal(other.results.find(({ app }: Json) => app === 'web').is_production, true)
  })

  for (const bad of [
    { top_n: 0 },
    { top_n: 1001 },
    { lookback_days: 0 },
    { lookback_days: 366 },
    { min_connections: -1 },
  ])
    await bench.fails(INFRA, bad, 'invalid_argument')
})

t.test('infrastructure: ends that are not an application', async (t) => {
  const bench = await start(
    t,
    estateOf(['a/prod > a|b/prod 3', 'a|b/prod > a/prod 2', 'a/prod > a/prod 50'], {
      hosts: {
        half: { ip: '10.1.0.1', labels: 'app=a' },
        bare: { ip: '10.1.0.2' },
        'env-only': { ip: '10.1.0.3', labels: 'env=prod' },
        printer: { ip: '10.1.0.4', managed: false, labels: 'app=printing env=prod' },
      },
      ipLists: { One: ['198.51.100.0/24'], Two: ['198.51.100.7'] },
      flows: [
        { from: 'half', to: 'a/prod', connections: 1000 },
        { from: 'bare', to: 'a/prod', connections: 1000 },
        { from: 'env-only', to: 'a/prod', connections: 1000 },
        { from: '198.51.100.7', to: 'a/prod', connections: 5 },
        { from: '198.51.100.7', to: 'a/prod', port: 22, connections: 5 },
        { from: 'a/prod', to: 'bare', connections: 1000 },
        { from: 'printer', to: 'a/prod', connections: 4 },
      ],
    }),
  )
  const { results, summary } = await bench.ok(INFRA)
  const of = (app: string) => results.find((row: Json) => row.app === app)
  t.same(results.map(({ app }: Json) => app).sort(), ['a', 'a|b', 'printing'])
  partial(t, of('a'), { in_degree: 2, out_degree: 1, inbound_connections: 6, outbound_connections: 3 }, 'no self-loop')
  t.equal(of('a').unmanaged_sources, 3, 'bare, env-only and one address on two ports and in two lists; half has an app')
  partial(t, of('a|b'), { in_degree: 1, out_degree: 1 })
  partial(t, of('printing'), { in_degree: 0, out_degree: 1 }, 'an unmanaged host with both labels is an application')
  partial(t, summary, { total_flows_analyzed: 10, app_to_app_flows: 3 })

  const silent = await start(t, { hosts: { x: { ip: '10.0.0.1', labels: 'app=x env=prod' } } })
  partial(t, await silent.ok(INFRA), {
    results: [],
    results_total: 0,
    message: 'No flows with a policy decision in the window; flows with decision unknown are not queried.',
  })
  partial(t, await silent.ok(LATERAL), {
    total_apps: 0,
    total_edges: 0,
    paths: undefined,
    message: 'No flows in the window.',
  })
  const bare = await start(t, {
    hosts: { x: { ip: '10.0.0.1' }, y: { ip: '10.0.0.2' } },
    flows: [{ from: 'x', to: 'y' }],
  })
  partial(t, await bare.ok(INFRA), {
    results: [],
    message: 'No flow has app and env labels on both ends, so there is nothing to rank.',
  })
  partial(t, await bare.ok(LATERAL), {
    total_apps: 0,
    message: 'No flow has app and env labels on both ends, so there is nothing to follow.',
  })
})

const CHAIN = ['a/P > b/P', 'b/P > c/P', 'c/P > d/P', 'd/P > e/P', 'e/P > f/P', 'g/P > b/P']
const pathsOf = (answer: Json) =>
  answer.paths.map(({ path }: Json) => path.map((key: string) => key.split('|')[0]).join(''))

t.test('lateral movement: the worked example', async (t) => {
  const bench = await start(t, estateOf(CHAIN))
  const answer = await bench.ok(LATERAL, { app_name: 'a', env_name: 'P', max_hops: 4 })
  partial(t, answer, {
    lookback_days: 30,
    app_to_app_flows: 6,
    total_apps: 7,
    total_edges: 6,
    blocked_edges: 0,
    articulation_points: 4,
    max_hops: 4,
  })
  t.same(answer.paths_from, ['a|P'])
  t.same(answer.paths, [
    { path: ['a|P', 'b|P', 'c|P', 'd|P', 'e|P'], hops: 4 },
    { path: ['a|P', 'b|P', 'c|P', 'd|P'], hops: 3 },
    { path: ['a|P', 'b|P', 'c|P'], hops: 2 },
    { path: ['a|P', 'b|P'], hops: 1 },
  ])
  partial(t, answer, { paths_total: 4, truncated: false })
  t.same(pathsOf(await bench.ok(LATERAL, { app_name: 'a', max_hops: 5 }))[0], 'abcdef')
  t.same(pathsOf(await bench.ok(LATERAL, { app_name: 'app=a', max_hops: 1 })), ['ab'])

  const whole = await bench.ok(LATERAL)
  t.same(
    whole.high_risk_bridge_nodes.map(({ app }: Json) => app),
    ['b', 'c', 'd', 'e'],
  )
  t.same(
    whole.top_reachable_nodes.map((row: Json) => [row.app, row.reachable_apps, row.is_bridge_node]),
    [
      ['a', 5, false],
      ['g', 5, false],
      ['b', 4, true],
      ['c', 3, true],
      ['d', 2, true],
      ['e', 1, true],
      ['f', 0, false],
    ],
  )
  t.notOk('paths' in whole, 'without a start there are no paths')
  const end = await bench.ok(LATERAL, { app_name: 'f' })
  partial(t, end, {
    paths: [],
    paths_total: 0,
    paths_from: ['f|P'],
    message: NOTHING_REACHED,
  })
  t.same(
    end.high_risk_bridge_nodes.map(({ app }: Json) => app),
    ['b', 'c', 'd', 'e'],
    'a start does not hide what bridges the estate',
  )
  t.equal(end.top_reachable_nodes.length, 7)
  t.match(end.recommendation, /^Ringfence the 4 articulation points first/)
})

t.test('lateral movement: the open ports of an edge', async (t) => {
  const rule = (from: string, to: string) => ({ from: `app=${from} env=P`, to: `app=${to} env=P`, extra: true })
  const bench = await start(
    t,
    estateOf(['w/P > x/P 7 443', 'w/P > x/P 3 22', 'x/P > y/P 9 3389', 'y/P > z/P 5 443', 'w/P > w/P 4 22'], {
      hosts: {
        'x/P': { ip: '10.9.0.1', labels: 'app=x env=P', mode: 'full' },
        'y/P': { ip: '10.9.0.2', labels: 'app=y env=P', mode: 'full' },
        'w/P': { ip: '10.9.0.3', labels: 'app=w env=P' },
        half: { ip: '10.9.0.4', labels: 'app=w' },
      },
      flows: [{ from: 'half', to: 'z/P', port: 22 }],
      ruleSets: [{ name: 'r', scope: '', allow: [rule('w', 'x'), rule('x', 'y')] }],
    }),
  )
  const answer = await bench.ok(LATERAL, { app_name: 'w' })
  partial(t, answer, { total_apps: 4, total_edges: 2, blocked_edges: 1, high_risk_edges_total: 2 })
  t.same(pathsOf(answer), ['wxy', 'wx'], 'z lies behind an edge that is blocked only')
  t.same(answer.high_risk_edges, [
    {
      from: 'x|P',
      to: 'y|P',
      connections: 9,
      ports: ['3389/tcp'],
      ports_total: 1,
      high_risk_ports: [3389],
      policy_decisions: { allowed: 9 },
    },
    {
      from: 'w|P',
      to: 'x|P',
      connections: 10,
      ports: ['443/tcp', '22/tcp'],
      ports_total: 2,
      high_risk_ports: [22],
      policy_decisions: { allowed: 10 },
    },
  ])
  t.same(
    answer.path_edges.map(({ from, to }: Json) => `${from} ${to}`),
    ['w|P x|P', 'x|P y|P'],
  )
  t.equal(answer.top_reachable_nodes.length, 4, 'lists are of the whole graph')
  partial(t, answer, { app_to_app_flows: 4 })
  t.match(answer.recommendation, /on 2 edges between labelled applications\.$/)
  t.equal((await bench.ok(LATERAL, { app_name: 'z', env_name: 'P' })).total_apps, 4)
})

t.test('lateral movement: starting points', async (t) => {
  const bench = await start(
    t,
    estateOf(['pay/prod > payments/prod', 'pay/dev > pay/prod', 'payments/prod > pay/dev', 'db/dev > pay/dev'], {
      labels: ['app=idle'],
    }),
  )
  t.same((await bench.ok(LATERAL, { app_name: 'pay' })).paths_from, ['pay|dev', 'pay|prod'], 'every env; not payments')
  const dev = await bench.ok(LATERAL, { env_name: 'dev' })
  t.same(dev.paths_from, ['db|dev', 'pay|dev'], 'an env alone: every application in it')
  t.same(
    dev.top_reachable_nodes.map(({ env }: Json) => env),
    ['dev', 'dev'],
    'and nothing else is listed',
  )
  partial(t, dev, { total_apps: 4, paths_total: 5, truncated: false })
  const idle = await bench.ok(LATERAL, { app_name: 'idle' })
  partial(t, idle, { paths_from: [], paths: [], paths_total: 0, message: /no flow to or from another/ })
  await bench.fails(LATERAL, { app_name: 'paymen' }, 'not_found')
  await bench.fails(LATERAL, { app_name: 'pay', env_name: 'staging' }, 'not_found')
  for (const max_hops of [0, 11, 1.5]) await bench.fails(LATERAL, { max_hops }, 'invalid_argument')
})

t.test('lateral movement: more than is shown', async (t) => {
  const bench = await start(t, estateOf(Array.from({ length: 60 }, (_, at) => `hub/P > n${at}/P ${at + 1} 22`)))
  const answer = await bench.ok(LATERAL, { app_name: 'hub' })
  partial(t, answer, {
    paths_total: 60,
    truncated: true,
    total_edges: 60,
    high_risk_edges_total: 60,
    articulation_points: 1,
  })
  t.equal(answer.paths.length, 50)
  t.equal(answer.high_risk_edges.length, 10)
  t.same(answer.truncated_sections.sort(), ['high_risk_edges', 'paths', 'top_reachable_nodes'])
  t.equal(answer.top_reachable_nodes.length, 10)
  const small = await start(t, estateOf(CHAIN), { budget: 2000 })
  const cut = await small.ok(LATERAL, { app_name: 'a' })
  t.ok(JSON.stringify(cut).length <= 2000 || cut.truncation_note, 'a small budget costs rows and says so')
  partial(t, cut, { total_apps: 7, total_edges: 6, paths_total: 4 })
})

t.test('infrastructure: more than is shown', async (t) => {
  const bench = await start(
    t,
    estateOf(
      [
        ...seq(25).map((at) => `u${at}/prod > hub/prod 9 ${1000 + (at % 7)}`),
        ...seq(5).flatMap((at) => seq(25).map((from) => `u${from}/prod > top${at}/prod 9 443`)),
        'hub/prod > hub/prod 500 8080',
      ],
      {
        hosts: { half: { ip: '10.1.0.1', labels: 'app=half' } },
        flows: [{ from: 'half', to: 'hub/prod', port: 1000 }],
      },
    ),
  )
  const { results, results_total: all, summary } = await bench.ok(INFRA)
  t.same([results.length, all], [20, 31], 'twenty unless told otherwise')
  const hub = results.find(({ app }: Json) => app === 'hub')
  partial(t, hub, { in_degree: 25, ports_total: 7 })
  t.equal(hub.consumed_by.length, 5)
  const alone = await bench.ok(INFRA, { sections: ['consumed_by'] })
  t.equal(alone.results.find(({ app }: Json) => app === 'hub').consumed_by.length, 20, 'more as the only part')
  t.same(
    hub.top_ports.map(({ port, connections }: Json) => [port, connections]),
    [
      [1000, 37],
      [1001, 36],
      [1002, 36],
      [1003, 36],
      [1004, 27],
    ],
    'traffic inside an application is not counted between applications',
  )
  t.match(
    summary.recommendation,
    /starting with "hub \(prod\)", "top0 \(prod\)", "top1 \(prod\)"\.$/,
    'the first three',
  )
  const full = await bench.ok(INFRA, { detail_level: 'full' })
  t.equal(full.results.find(({ app }: Json) => app === 'hub').consumed_by.length, 25)
})

t.test('infrastructure: all that is asked for is there, in brief where whole rows have no room', async (t) => {
  const apps = estateOf(seq(80).map((at) => `a${at}/prod > a${(at * 7 + 1) % 80}/prod 9 443`))
  const budget = 12_000
  const [whole, bench] = [await start(t, apps, { budget: 200_000 }), await start(t, apps, { budget })]
  const { results: all } = await whole.ok(INFRA, { top_n: 200 })
  const answer = await bench.ok(INFRA, { top_n: 200 })
  t.ok(Buffer.byteLength(JSON.stringify(answer)) <= budget)
  const { columns, data } = answer.in_brief
  t.same(columns, ['app', 'env', 'infrastructure_score', 'in_degree', 'out_degree', 'total_connections'])
  t.ok(answer.results.length >= 10 && answer.results.every((row: Json) => row.consumes.length > 0), 'with neighbours')
  t.same(
    [...answer.results.map((row: Json) => columns.map((name: string) => row[name])), ...data],
    all.map((row: Json) => columns.map((name: string) => row[name])),
  )
  t.equal(answer.truncated, false)
  t.notOk('truncated_sections' in answer)
  const some = await bench.ok(INFRA, { top_n: 60 })
  t.equal(some.results.length + some.in_brief.data.length, 60)
  partial(t, some, { truncated: true, truncated_sections: ['results'], truncation_note: /raise top_n to see others/ })
})

t.test('lateral movement: high-risk ports', async (t) => {
  const PORTS = [22, 23, 135, 139, 445, 3389, 5985, 5986]
  const rule = { from: 'app=a env=P', to: 'app=mixed env=P', extra: true }
  const bench = await start(
    t,
    estateOf([...PORTS.map((port) => `a/P > b/P 1 ${port}`), ...seq(6).map((at) => `a/P > b/P 1 ${8000 + at}`)], {
      hosts: {
        udp: { ip: '10.9.0.1', labels: 'app=udp env=P' },
        sctp: { ip: '10.9.0.2', labels: 'app=sctp env=P' },
        mixed: { ip: '10.9.0.3', labels: 'app=mixed env=P' },
        'mixed-2': { ip: '10.9.0.4', labels: 'app=mixed env=P', mode: 'full' },
      },
      flows: [
        { from: 'a/P', to: 'udp', port: 3389, proto: 17, connections: 2 },
        { from: 'a/P', to: 'sctp', port: 22, proto: 132 },
        { from: 'a/P', to: 'mixed', port: 443 },
        { from: 'a/P', to: 'mixed-2', port: 22 },
      ],
      ruleSets: [{ name: 'r', scope: '', deny: [rule] }],
    }),
  )
  const answer = await bench.ok(LATERAL, { app_name: 'a', max_hops: 1 })
  t.same(
    answer.high_risk_edges.map((edge: Json) => [edge.to, edge.high_risk_ports]),
    [
      ['b|P', PORTS],
      ['udp|P', [3389]],
    ],
    'TCP and UDP; neither another protocol nor what is blocked',
  )
  const of = (to: string) => answer.path_edges.find((edge: Json) => edge.to === to)
  t.equal(of('b|P').ports.length, 10)
  t.equal(of('b|P').ports_total, 14)
  partial(t, of('mixed|P'), { ports: ['443/tcp'], ports_total: 1, high_risk_ports: [] }, 'blocked rows open no port')
  t.same(of('mixed|P').policy_decisions, { potentially_blocked: 1, blocked: 1 })
  t.same(decisionsAsked(bench), [], 'what nobody judged passed, too')
})

t.test('lateral movement: an env alone narrows the lists', async (t) => {
  const bench = await start(
    t,
    estateOf([
      'a/P > b/P',
      'b/P > c/P',
      'x/D > y/D 3 22',
      'y/D > z/D',
      'c/P > x/D 2 22',
      'x/D > c/P 1 23',
      'a/P > c/P 1 3389',
    ]),
  )
  const whole = await bench.ok(LATERAL)
  partial(t, whole, { articulation_points: 3, high_risk_edges_total: 4 })
  t.match(
    whole.recommendation,
    /^Ringfence the 3 articulation points first.*on 4 edges between labelled applications\.$/,
  )
  const dev = await bench.ok(LATERAL, { env_name: 'D' })
  partial(t, dev, { articulation_points: 3, high_risk_edges_total: 3 })
  t.same(
    dev.high_risk_bridge_nodes.map(({ app }: Json) => app),
    ['x', 'y'],
  )
  t.same(
    dev.high_risk_edges.map(({ from, to }: Json) => `${from} ${to}`),
    ['x|D y|D', 'c|P x|D', 'x|D c|P'],
    'edges that start or end in it',
  )
  t.match(dev.recommendation, /^Ringfence the 2 articulation points of env "D" first.*on 3 edges .* of env "D"\.$/)
  const both = await bench.ok(LATERAL, { app_name: 'x', env_name: 'D' })
  partial(t, both, { high_risk_edges_total: 4, high_risk_bridge_nodes: { length: 3 } })
})

t.test('lateral movement: blocked and unknown traffic', async (t) => {
  const bench = await start(
    t,
    estateOf(['a/P > b/P', 'b/P > a/P'], {
      hosts: { bare: { ip: '10.9.0.1' } },
      flows: [{ from: 'a/P', to: 'bare', port: 3389 }],
    }),
  )
  const { recommendation } = await bench.ok(LATERAL)
  t.equal(
    recommendation,
    'No labelled application connects parts that would otherwise be separate. No remote administration or file sharing between labelled applications is open.',
  )
  const alone = await start(
    t,
    estateOf(['b/P > a/P'], {
      hosts: { bare: { ip: '10.9.0.1' } },
      flows: [{ from: 'a/P', to: 'bare', port: 3389 }],
    }),
  )
  const { message } = await alone.ok(LATERAL, { app_name: 'a' })
  t.equal(message, NOTHING_REACHED)
})

t.test('lateral movement: policy in force decides, whatever was recorded', async (t) => {
  const flow = (from: string, to: string, recorded: HandMadeFlow['recorded'], port = 443) => ({
    from: `${from}/P`,
    to: `${to}/P`,
    port,
    ...(recorded && { recorded }),
  })
  const host = (app: string, at: number, mode?: HandMadeHost['mode']): [string, HandMadeHost] => [
    `${app}/P`,
    { ip: `10.9.0.${at}`, labels: `app=${app} env=P`, ...(mode && { mode }) },
  ]
  const bench = await start(t, {
    hosts: Object.fromEntries([
      host('a', 1),
      host('b', 2, 'full'),
      host('c', 3, 'selective'),
      host('d', 4, 'idle'),
      host('e', 5, 'idle'),
    ]),
    flows: [
      flow('a', 'b', 'allowed'),
      flow('a', 'c', 'blocked', 22),
      flow('c', 'd', 'allowed', 22),
      flow('d', 'e', 'unknown'),
      flow('a', 'e', 'blocked'),
    ],
    ruleSets: [{ name: 'r', scope: '', deny: [{ from: 'app=c', to: 'app=d', extra: true }] }],
  })
  const answer = await bench.ok(LATERAL, { app_name: 'a', env_name: 'P' })
  partial(t, answer, { total_apps: 5, total_edges: 4, blocked_edges: 1, undecided_edges: 1 })
  t.same(answer.paths, [
    { path: ['a|P', 'c|P', 'd|P'], hops: 2, undecided: true },
    { path: ['a|P', 'c|P'], hops: 1 },
    { path: ['a|P', 'e|P'], hops: 1 },
  ])
  t.same([answer.paths_total, answer.paths_undecided], [3, 1])
  t.same(
    answer.path_edges.map((edge: Json) => [edge.to, edge.policy_decisions, edge.undecided]),
    [
      ['c|P', { potentially_blocked: 1 }, undefined],
      ['d|P', { potentially_blocked: 1 }, true],
      ['e|P', { potentially_blocked: 1 }, undefined],
    ],
  )
  t.same(answer.recorded_otherwise, { allowed_without_rule: 2, stopped_despite_rule: 0 })
  t.same(answer.assumes, ['P51'])
  t.match(
    answer.message,
    /^1 edge is followed as open but may be blocked: undecided because of deny rules at sources in selective mode\. recorded_otherwise: /,
  )
  const to = await bench.ok(LATERAL, { target: 'd|P' })
  t.same([pathsOf(to), to.paths_total, to.paths_undecided], [['cd', 'acd'], 2, 2])
  t.same(
    [to.sources_by_hops, to.sources_by_hops_undecided],
    [
      { 1: 1, 2: 1 },
      { 1: 1, 2: 1 },
    ],
  )
  t.match(
    to.recommendation,
    /2 labelled applications can reach it within 4 hops, 1 directly, 2 of them only over edges that may be blocked\./,
  )
  const between = await bench.ok(LATERAL, { app_name: 'a', env_name: 'P', target: 'e|P' })
  t.same([pathsOf(between), between.paths_undecided], [['ae', 'acde'], 1])
  bench.simulator.faults.add({ kind: 'status', path: /active\/services$/, status: 403, times: 9, body: [] })
  const unread = await bench.ok(LATERAL, { app_name: 'a', env_name: 'P' })
  partial(t, unread, { total_edges: 5, blocked_edges: 0, undecided_edges: 3 })
  t.match(unread.message, /undecided because of .*a policy that could not be read/)
})

t.test('lateral movement: what undecided edges decide is marked, and certain paths come first', async (t) => {
  const host = (app: string, at: number, mode?: HandMadeHost['mode']): [string, HandMadeHost] => [
    `${app}/P`,
    { ip: `10.9.0.${at}`, labels: `app=${app} env=P`, ...(mode && { mode }) },
  ]
  const deny = (to: string) => ({ from: 'app=a', to: `app=${to}`, extra: true })
  const { ok } = await start(
    t,
    // A source in selective mode perhaps drops what is denied (P51).
    estateOf(['a/P > b/P', 'b/P > c/P', 'a/P > c/P', 'a/P > d/P'], {
      hosts: Object.fromEntries([host('a', 1, 'selective'), host('b', 2), host('c', 3), host('d', 4)]),
      ruleSets: [{ name: 'r', scope: '', deny: [deny('c'), deny('d')] }],
    }),
  )
  const answer = await ok(LATERAL, { app_name: 'a', env_name: 'P' })
  partial(t, answer, { undecided_edges: 2, articulation_points: 2, articulation_points_undecided: 2 })
  t.same(
    answer.high_risk_bridge_nodes.map((row: Json) => [
      row.app,
      row.undecided,
      row.reachable_apps,
      [row.direct_connections_out, row.direct_undecided_out],
      [row.direct_connections_in, row.direct_undecided_in],
    ]),
    [
      ['a', true, 3, [3, 2], [0, undefined]],
      ['b', true, 1, [1, undefined], [1, undefined]],
    ],
  )
  t.same(answer.top_reachable_nodes[0], {
    app: 'a',
    env: 'P',
    reachable_apps: 3,
    reachable_undecided: 1,
    is_bridge_node: true,
    bridge_undecided: true,
  })
  t.match(
    answer.recommendation,
    /^Ringfence the 2 articulation points first: .* separate, but only perhaps, depending on edges that may be blocked\./,
  )
  t.same(answer.paths, [
    { path: ['a|P', 'b|P', 'c|P'], hops: 2 },
    { path: ['a|P', 'b|P'], hops: 1 },
    { path: ['a|P', 'd|P'], hops: 1, undecided: true },
  ])
  t.same([answer.paths_total, answer.paths_undecided], [3, 1])
  const to = await ok(LATERAL, { target: 'c|P' })
  t.same([pathsOf(to), to.paths_total, to.paths_undecided], [['bc', 'abc'], 2, undefined])
  t.same(
    [to.sources_by_hops, to.sources_by_hops_undecided],
    [{ 1: 2 }, { 1: 1 }],
    'a is perhaps one hop away, and two for certain',
  )
})

/** One edge, to a workload without a VEN; rows recorded otherwise inside its application and to a host without labels. */
const ONE_EDGE: HandMadeEstate = estateOf(['a/P > print/P'], {
  hosts: {
    'print/P': { ip: '10.9.0.1', labels: 'app=print env=P', managed: false },
    a2: { ip: '10.9.0.2', labels: 'app=a env=P' },
    bare: { ip: '10.9.0.3', managed: false },
  },
  flows: ['a2', 'bare'].map((to) => ({ from: 'a/P', to, port: 22, recorded: 'allowed' as const })),
})

t.test('lateral movement: only rows that are edges count in what the answer relies on', async (t) => {
  const { ok } = await start(t, ONE_EDGE)
  for (const args of [{}, { target: 'print|P' }])
    partial(t, await ok(LATERAL, args), { total_edges: 1, recorded_otherwise: undefined })
})

t.test('lateral movement: without the inventory, what rows call unmanaged may be managed', async (t) => {
  const { ok, simulator } = await start(t, ONE_EDGE)
  simulator.faults.add({ kind: 'status', path: /\/workloads$/, status: 403, times: 9, body: [] })
  const { message } = await ok(LATERAL)
  t.match(
    message,
    /^1 edge is followed as open but may be blocked: undecided because of an unknown enforcement mode\. The mode of 2 workloads is not known \(1 unmanaged in the rows, which is taken as so\): /,
  )
})

t.test('lateral movement: ten rows, ten bridges', async (t) => {
  const chain = seq(14).map((at) => `n${at + 10}/P > n${at + 11}/P`)
  const bench = await start(t, estateOf([...chain, ...seq(10).map((at) => `n10/P > m${at}/P`)]))
  const answer = await bench.ok(LATERAL)
  t.equal(answer.high_risk_bridge_nodes.length, 10)
  t.equal(answer.top_reachable_nodes.length, 10)
  t.same(answer.truncated_sections.sort(), ['high_risk_bridge_nodes', 'top_reachable_nodes'])
})

t.test('lateral movement: a label renamed since the list was read', async (t) => {
  const bench = await start(t, estateOf(['old/P > b/P']))
  await bench.ok(LATERAL)
  const [label] = (await bench.pce.labels.getAll()).filter(({ value }) => value === 'old')
  await bench.pce.labels.update(label!.href, { value: 'new' })
  await bench.fails(LATERAL, { app_name: 'old' }, 'not_found')
  t.same((await bench.ok(LATERAL, { app_name: 'new' })).paths_from, ['new|P'])
})

t.test('lateral movement: who reaches a target', async (t) => {
  const bench = await start(
    t,
    estateOf([...CHAIN, 'h/P > d/P 2 22', 'd/P > x/Q 1 22', 'd/P > h/P 1 22', 'a/P > h/P'], {
      hosts: { bare: { ip: '10.9.0.1' }, half: { ip: '10.9.0.2', labels: 'app=half' } },
      flows: ['bare', 'half', 'bare'].map((from, at) => ({ from, to: 'd/P', port: 443 + at })),
    }),
  )
  const to = await bench.ok(LATERAL, { target: 'd|P', max_hops: 2 })
  t.same(to.paths_to, ['d|P'])
  t.notOk('paths_from' in to)
  t.same(pathsOf(to), ['cd', 'hd', 'ahd', 'bcd'], 'the nearest first')
  t.same([to.paths_total, to.truncated, to.max_hops], [4, false, 2])
  t.same(to.sources_by_hops, { 1: 2, 2: 2, 3: 1 }, 'over any number of hops')
  t.equal(to.unlabelled_sources, 2)
  t.same(
    to.path_edges.map(({ from, to }: Json) => `${from} ${to}`),
    ['c|P d|P', 'h|P d|P', 'a|P h|P', 'b|P c|P'],
  )
  t.same(
    to.high_risk_edges.map(({ from, to }: Json) => `${from} ${to}`),
    ['h|P d|P'],
    'on the way to it',
  )
  t.same(to.top_reachable_nodes.map(({ app }: Json) => app).sort(), ['a', 'b', 'c', 'd', 'h'])
  t.equal(
    to.recommendation,
    'Ringfence "d (P)" first: 4 labelled applications can reach it within 2 hops, 2 directly. Restrict remote administration and file sharing on 1 edge on the way to it.',
  )
  for (const target of ['d (P)', 'app=d', 'd', { app: 'd', env: 'P' }, { key: 'app', value: 'd' }])
    t.same((await bench.ok(LATERAL, { target })).paths_to, ['d|P'], JSON.stringify(target))
  t.same((await bench.ok(LATERAL, { target: 'env=Q' })).paths_to, ['x|Q'])

  const both = await bench.ok(LATERAL, { app_name: 'a', env_name: 'P', target: 'd|P' })
  t.same([both.paths_from, both.paths_to], [['a|P'], ['d|P']])
  t.same(pathsOf(both), ['ahd', 'abcd'], 'all paths, not the shortest alone')
  t.same([both.paths_total, both.truncated], [2, false])
  t.notOk('sources_by_hops' in both)
  const on = await bench.ok(LATERAL, { app_name: 'g', target: 'f|P', max_hops: 5 })
  t.match(on.recommendation, /Every path passes "b \(P\)", "c \(P\)", "d \(P\)", "e \(P\)"\./)
  const short = await bench.ok(LATERAL, { app_name: 'g', target: 'f|P' })
  t.same(short.paths, [])
  t.equal(
    short.message,
    'No flow leads from the start to the target in 4 hops except what is blocked; hosts without app or env label are not followed.',
  )
  const none = await bench.ok(LATERAL, { target: 'half' })
  t.equal(none.message, 'The target has no flow to or from another labelled application in the window.')
  const { near_names: near } = await bench.fails(LATERAL, { target: 'd|Prod' }, 'not_found')
  t.ok(Array.isArray(near))
  await bench.fails(LATERAL, { target: 'nowhere' }, 'not_found')
  await bench.fails(LATERAL, { target: '' }, 'not_found')
  const self = await bench.fails(LATERAL, { app_name: 'd', env_name: 'P', target: 'd|P' }, 'invalid_argument')
  t.equal(self.message, 'target: "d (P)" is where the paths start.')
})

t.test('lateral movement: unread rows may contain what was not seen', async (t) => {
  const found = await searchMovement(
    collectAppGraph(createFlowEncoder(null)).finish(),
    { open: new Set(), perhaps: new Set() },
    { start: {}, target: {}, maxHops: 4 },
    new AbortController().signal,
  )
  const analysed = { pce_flows: 1, rows: 1, unparseable: 0, row_limit: 1 }
  const adviceWhen = (truncated: boolean) =>
    showMovement(
      {
        days: 30,
        between: 0,
        found,
        question: { start: {}, target: {}, maxHops: 4 },
        ports: collectEdgePorts(),
        reading: { window: { start: '', end: '' }, flows_truncated: truncated, analysed },
        doubts: { because: '', recorded: { allowed_without_rule: 0, stopped_despite_rule: 0 }, assumes: [], modes: [] },
      },
      {
        chosen: chooseSections(undefined, MOVEMENT_PARTS),
        detail: 'standard',
        limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
      },
    ).recommendation
  t.match(adviceWhen(true), /in the rows read\. .* in the rows read; the missing rows may have some/)
  t.notMatch(adviceWhen(false), /rows/)
})
