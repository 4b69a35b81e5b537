/** The graph parts of identify-infrastructure-services and detect-lateral-movement-paths (T17, T18). */
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { UndirectedGraph } from 'graphology'
import t, { type Test } from 'tap'
import type { Application } from '../../domain/traffic/applications.js'
import {
  buildAdjacency,
  reverseAdjacency,
  uniteAdjacency,
  layOutGraph as layOut,
} from '../../domain/dependency-map/lay-out-graph.js'
import { countReachable, rankReach } from '../../domain/dependency-map/rank-reach.js'
import { findArticulationPoints } from '../../domain/dependency-map/find-components.js'
import { countHopsTo, findPaths, findPathsBetween, findPathsTo } from '../../domain/dependency-map/search-movement.js'
import { measureBetweenness } from '../../domain/dependency-map/measure-betweenness.js'
import {
  rankInfrastructure as rankColumns,
  scoreInfrastructure,
  type InfrastructureRow,
} from '../../domain/dependency-map/rank-infrastructure.js'
import { workInTurns, type Steps } from '../../domain/text/pace-work.js'
import { partial } from '../partial.js'
import * as brute from './graph-brute-force.js'
import { inColumns, type DrawnGraph } from './graph-brute-force.js'

// Its types promise a default export that the package, a CommonJS one, does not have.
const libraryBetweenness = createRequire(import.meta.url)('graphology-metrics/centrality/betweenness') as (
  graph: UndirectedGraph,
  options: { getEdgeWeight: null },
) => Record<string, number>

const layOutGraph = (graph: DrawnGraph) => layOut(inColumns(graph))
const rankInfrastructure = (graph: DrawnGraph, options: Parameters<typeof rankColumns>[1]) =>
  rankColumns(inColumns(graph), options)

/** A calculation without giving way. */
function run<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** `a>b 5`: five connections from a to b. A node is in P, unless it is written `a/Staging`. */
function draw(...edges: string[]): DrawnGraph {
  const names: string[] = []
  const place = (name: string) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1)
  const drawn = edges.map((edge) => {
    const [, from, to, connections] = /^(\S+)>(\S+) ?(\d*)$/.exec(edge)!
    return { from: place(from!), to: place(to!), connections: Number(connections || 1) }
  })
  return { nodes: names.map((name) => ({ app: name.split('/')[0]!, env: name.split('/')[1] ?? 'P' })), edges: drawn }
}
const ESTATE = draw(
  'crm>dns 100',
  'pay>dns 80',
  'web/Staging>dns 10',
  'crm>pay 40',
  'mon>crm 5',
  'mon>pay 5',
  'mon>web/Staging 5',
)
const CHAIN = draw('a>b', 'b>c', 'c>d', 'd>e', 'e>f', 'g>b')

const PRODUCTION = { minConnections: 1, productionEnvs: ['prod', 'production', 'P'] }
const rank = (graph: DrawnGraph, minConnections = 1) =>
  run(rankInfrastructure(graph, { ...PRODUCTION, minConnections }))
const walk = (graph: DrawnGraph, starts: readonly number[], maxHops: number) => {
  const { paths, total } = run(findPaths(layOutGraph(graph), starts, maxHops))
  return { total, paths: paths.map(({ path }) => path.map((node) => graph.nodes[node]!.app).join('')) }
}

// Few and awkward names: some contain the bar, some contain one another, some only look alike.
const anyNode = fc.record({
  app: fc.constantFrom('a', 'a|b', 'b', 'ab', 'A'),
  env: fc.constantFrom('c', 'b|c', 'prod'),
})
const graphsOf = (node: fc.Arbitrary<Application>, mostNodes: number): fc.Arbitrary<DrawnGraph> =>
  fc
    .uniqueArray(node, { maxLength: mostNodes, size: 'max', selector: ({ app, env }) => JSON.stringify([app, env]) })
    .chain((nodes) => {
      const place = fc.nat(Math.max(0, nodes.length - 1))
      const edge = fc.record({ from: place, to: place, connections: fc.integer({ min: 1, max: 4 }) })
      const edges = fc.uniqueArray(edge, {
        maxLength: nodes.length === 0 ? 0 : 16,
        size: 'max',
        selector: ({ from, to }) => `${from} ${to}`,
      })
      return fc.record({ nodes: fc.constant(nodes), edges })
    })
const anyGraph = graphsOf(anyNode, 8)
const near = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((value, i) => Math.abs(value - b[i]!) < 1e-9)

/** A failure shows its counterexample, as small as it gets in the time. */
function holds<Values extends [unknown, ...unknown[]]>(t: Test, property: fc.IProperty<Values>, numRuns: number): void {
  const details = fc.check(property, { numRuns, interruptAfterTimeLimit: 20_000 })
  t.notOk(details.failed, fc.defaultReportMessage(details) ?? `held for ${details.numRuns} cases`)
}

t.test('the infrastructure of the worked example', async (t) => {
  const { rows, edges, tier_counts: tiers } = rank(ESTATE)
  t.equal(edges, 7)
  t.same(tiers, { core_infrastructure: 2, shared_service: 0, standard_application: 3 })
  const figures = (row: InfrastructureRow) => {
    const { node, app, env, tier, dominant_pattern: pattern, consumed_by: by, consumes } = row
    t.same(ESTATE.nodes[node], { app, env })
    t.equal(row.is_production, env === 'P')
    const scores = [row.infrastructure_score, row.provider_score, row.consumer_score]
    const shape = [row.in_degree, row.out_degree, row.betweenness_centrality, row.consumer_ratio]
    const connections = [row.inbound_connections, row.outbound_connections, row.total_connections]
    return [app, tier, pattern, scores, shape, connections, by, consumes]
  }
  const [core, standard] = ['Core Infrastructure', 'Standard Application']
  const [crm, dns, mon, pay, web] = ['crm|P', 'dns|P', 'mon|P', 'pay|P', 'web|Staging']
  t.same(rows.map(figures), [
    ['dns', core, 'provider', [100, 100, 30], [3, 0, 0.1667, 1], [190, 0, 190], [crm, pay, web], []],
    ['mon', core, 'consumer', [95.4, 25.4, 95.4], [0, 3, 0.1667, 0], [0, 15, 15], [], [crm, pay, web]],
    ['crm', standard, 'consumer', [45.2, 35.5, 58.8], [1, 2, 0.0556, 0.33], [5, 140, 145], [mon], [dns, pay]],
    ['pay', standard, 'provider', [44.8, 58.3, 35], [2, 1, 0.0556, 0.67], [45, 80, 125], [crm, mon], [dns]],
    ['web', standard, 'provider', [14.3, 37.1, 37.1], [1, 1, 0.0556, 0.5], [5, 10, 15], [mon], [dns]],
  ])
})

t.test('the reach and the paths of the worked example', async (t) => {
  const rows = run(rankReach(layOutGraph(CHAIN)))
  t.same(
    rows.map((row) => [row.app, row.reachable_apps, row.is_articulation_point]),
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
  t.same(rows[2], {
    node: 1,
    app: 'b',
    env: 'P',
    is_articulation_point: true,
    reachable_apps: 4,
    direct_connections_out: 1,
    direct_connections_in: 2,
    isPerhapsOne: false,
    reachedPerhaps: 0,
    directPerhaps: { out: 0, in: 0 },
  })
  t.same(walk(CHAIN, [0], 4), { total: 4, paths: ['abcde', 'abcd', 'abc', 'ab'] }, 'f is five hops away')
  t.same(run(findPaths(layOutGraph(CHAIN), [0], 1)), {
    total: 1,
    paths: [{ path: [0, 1], hops: 1 }],
    isCounted: true,
    undecided: 0,
  })
})

t.test('the score of a node', async (t) => {
  const greatest = { inDegree: 10, outDegree: 10, betweenness: 0.5, totalConnections: 100 }
  const provider = { inDegree: 10, outDegree: 0, betweenness: 0, totalConnections: 0 }
  const score = (more: object, isProduction = true) =>
    scoreInfrastructure({ ...provider, ...more }, greatest, isProduction)
  partial(t, score({}), { score: 70, tier: 'Shared Service', pattern: 'provider' })
  partial(t, score({}, false), { score: 35, provider: 70, tier: 'Standard Application' })
  partial(
    t,
    score({ totalConnections: 100 }),
    { score: 75, tier: 'Core Infrastructure' },
    'the bounds belong to the tier',
  )
  partial(t, score({ totalConnections: 98.9 }), { score: 74.9, tier: 'Shared Service' })
  partial(
    t,
    score({ totalConnections: 99.2 }),
    { score: 75, tier: 'Core Infrastructure' },
    'a tier agrees with the score shown',
  )
  partial(t, score({ inDegree: 5 }), { score: 50, tier: 'Shared Service' })
  partial(t, score({ inDegree: 4 }), { score: 46, tier: 'Standard Application' })
  partial(t, score({ inDegree: 0, outDegree: 10 }), { score: 70, pattern: 'consumer' })
  partial(t, score({ outDegree: 10 }), { score: 13.8, provider: 55, pattern: 'provider' }, 'a tie is a provider')
  partial(
    t,
    scoreInfrastructure({ ...provider, inDegree: 2, outDegree: 7 }, { ...greatest, inDegree: 2, outDegree: 12 }, true),
    { provider: 46.7, consumer: 46.7, pattern: 'provider' },
    'and so is one that binary fractions miss',
  )
})

t.test('rows a ranking leaves out', async (t) => {
  const rest = (graph: DrawnGraph, min: number) => rank(graph, min).rows.map(({ app }) => app)
  const graph = draw('a>b 5', 'b>c 4', 'd>d 9', 'c>a 1')
  t.same(rest(graph, 4).sort(), ['a', 'b', 'c'], 'a node that only talks to itself')
  t.same(rest(graph, 5).sort(), ['a', 'b'], 'the bound is kept')
  t.same(rank(graph, 6), {
    rows: [],
    edges: 0,
    tier_counts: { core_infrastructure: 0, shared_service: 0, standard_application: 0 },
  })
  const [middle] = rank(draw('a>b 5', 'b>c 5', 'c>d 1'), 5).rows.filter(({ app }) => app === 'b')
  t.equal(middle?.betweenness_centrality, 1, 'n counts the nodes that are left')
})

t.test('awkward graphs', async (t) => {
  const empty = { nodes: [], edges: [] }
  t.same(rank(empty).rows, [])
  t.same(run(rankReach(layOutGraph(empty))), [])
  t.same(walk(empty, [], 4), { total: 0, paths: [] })

  const pair = rank(draw('a>b 3')).rows
  t.same(
    pair.map(({ app, betweenness_centrality: between, infrastructure_score: score }) => [app, between, score]),
    [
      ['a', 0, 75],
      ['b', 0, 75],
    ],
    'two nodes: no measure is divided by zero',
  )
  t.same(rank(draw('a>b 0'), 0).rows[0]?.infrastructure_score, 70, 'nor by a greatest of 0')

  const apart = draw('a>b', 'c>d', 'e>e')
  t.same(
    run(rankReach(layOutGraph(apart))).map(({ app, reachable_apps: reach }) => app + reach),
    ['a1', 'c1', 'b0', 'd0', 'e0'],
  )
  partial(t, run(rankReach(layOutGraph(apart)))[4], { app: 'e', direct_connections_out: 0, direct_connections_in: 0 })
  t.same(walk(apart, [0, 2, 4], 9), { total: 2, paths: ['ab', 'cd'] })

  const round = draw('a>b', 'b>c', 'c>a')
  t.same(
    run(rankReach(layOutGraph(round))).map(({ reachable_apps: reach }) => reach),
    [2, 2, 2],
    'a ring leads back, not on',
  )
  t.same(walk(round, [1, 1], 9), { total: 2, paths: ['bca', 'bc'] }, 'a start named twice is one start')
  t.same(walk(round, [1], 0), { total: 0, paths: [] })
})

t.test('names affect only the order', async (t) => {
  const nodes = [
    { app: 'b', env: 'x' },
    { app: 'a|b', env: 'c' },
    { app: 'a', env: 'b|c' },
    { app: 'a b', env: 'c' },
  ]
  const graph = { nodes, edges: [1, 2, 3].map((from) => ({ from, to: 0, connections: 2 })) }
  t.same(
    rank(graph).rows.map(({ node }) => node),
    [0, 3, 2, 1],
    'a space sorts before the bar, nodes that look alike by app',
  )
  t.same(
    run(rankReach(layOutGraph(graph))).map(({ node }) => node),
    [3, 2, 1, 0],
  )
  t.same(rank(graph).rows[0]?.consumed_by, ['a b|c', 'a|b|c', 'a|b|c'])
  t.equal(rank(graph).rows[0]?.in_degree, 3)
})

t.test('a long list of paths is cut but fully counted', async (t) => {
  const edges = Array.from({ length: 30 }, (_, i) => [`m>n${i + 10}`, `n${i + 10}>o${i + 10}`, `n${i + 10}>z`]).flat()
  const { total, paths } = walk(draw('z>m', ...edges), [0, 1], Infinity)
  t.equal(total, 2 * 61)
  t.equal(paths.length, 50)
  t.same(paths.slice(0, 2), ['zmn10o10', 'zmn11o11'], 'the longest first')
  t.same(paths.slice(28, 32), ['zmn38o38', 'zmn39o39', 'mn10o10', 'mn10z'])
})

t.test('every figure of a ranking holds on any graph', async (t) => {
  holds(
    t,
    fc.property(anyGraph, fc.integer({ min: 0, max: 4 }), (graph, min) => {
      const edges = graph.edges.filter(({ from, to, connections }) => from !== to && connections >= min)
      const used = graph.nodes.filter((_, node) => edges.some(({ from, to }) => from === node || to === node))
      const between = brute.betweenness(
        brute.undirected({
          nodes: used,
          edges: edges.map(({ from, to, connections }) => ({
            from: used.indexOf(graph.nodes[from]!),
            to: used.indexOf(graph.nodes[to]!),
            connections,
          })),
        }),
      )
      const facts = used.map((node, i) => {
        const [ins, outs] = (['to', 'from'] as const).map((end) =>
          edges.filter((edge) => graph.nodes[edge[end]] === node),
        )
        const [inbound, outbound] = [ins!, outs!].map((some) => some.reduce((sum, edge) => sum + edge.connections, 0))
        const names = (ends: number[]) => ends.map((end) => brute.keyOf(graph.nodes[end]!)).sort()
        const ratio = ins!.length / (ins!.length + outs!.length)
        const [by, consumes] = [names(ins!.map(({ from }) => from)), names(outs!.map(({ to }) => to))]
        return {
          node,
          in: ins!.length,
          out: outs!.length,
          inbound: inbound!,
          outbound: outbound!,
          ratio,
          by,
          consumes,
          b: between[i]!,
        }
      })
      const most = (pick: (fact: (typeof facts)[number]) => number) => Math.max(...facts.map(pick)) || 1
      const [mostIn, mostOut, mostB] = [most((f) => f.in), most((f) => f.out), most((f) => f.b)]
      const mostTotal = most((f) => f.inbound + f.outbound)
      const scored = facts.map((f) => {
        const both = (25 * f.b) / mostB + (5 * (f.inbound + f.outbound)) / mostTotal
        const best = Math.max((40 * f.in) / mostIn + 30 * f.ratio, (40 * f.out) / mostOut + 30 * (1 - f.ratio)) + both
        return { ...f, score: (best / (1 + 0.3 * Math.min(f.in, f.out))) * (f.node.env === 'prod' ? 1 : 0.5) }
      })
      const { rows, edges: kept } = rank(graph, min)
      if (kept !== edges.length || rows.length !== used.length) return false
      const inOrder = rows.every((row, i) => {
        const next = rows[i + 1]
        if (next === undefined || row.infrastructure_score > next.infrastructure_score) return true
        return row.infrastructure_score === next.infrastructure_score && brute.compareNodes(row, next) < 0
      })
      return (
        inOrder &&
        rows.every((row) => {
          const f = scored.find(({ node }) => node === graph.nodes[row.node])!
          const shape = [row.in_degree, row.out_degree, row.inbound_connections, row.outbound_connections]
          const total = row.total_connections
          return (
            near([...shape, total], [f.in, f.out, f.inbound, f.outbound, f.inbound + f.outbound]) &&
            Math.abs(row.infrastructure_score - f.score) <= 0.05 + 1e-9 &&
            Math.abs(row.betweenness_centrality - f.b) <= 0.00005 + 1e-9 &&
            Math.abs(row.consumer_ratio - f.ratio) <= 0.005 + 1e-9 &&
            row.consumed_by.join() === f.by.join() &&
            row.consumes.join() === f.consumes.join()
          )
        })
      )
    }),
    300,
  )
})

t.test('betweenness, articulation points, reach and paths match their definitions on any graph', async (t) => {
  const hops = fc.constantFrom(0, 1, 2, 3, 8)
  holds(
    t,
    fc.property(anyGraph, fc.array(fc.nat(7)), hops, (graph, anyStarts, maxHops) => {
      const layout = layOutGraph(graph)
      const given = <T>(figures: ArrayLike<T>) => graph.nodes.map((_, place) => figures[layout.placed[place]!]!)
      const [along, around] = [brute.directed(graph), brute.undirected(graph)]
      const starts = [...new Set(anyStarts.filter((start) => start < graph.nodes.length))]
      const found = run(findPaths(layout, starts, maxHops))
      const all = brute.paths(graph, starts, maxHops)
      return (
        near(given(run(measureBetweenness(layout.neighbours))), brute.betweenness(around)) &&
        near(given(run(countReachable(layout.outgoing))), brute.reach(along)) &&
        given(run(findArticulationPoints(layout.neighbours))).join() ===
          brute.articulationPoints(around).map(Number).join() &&
        found.total === all.length &&
        found.paths.map(({ path }) => path).join(' ') === all.slice(0, 50).join(' ') &&
        found.paths.every(({ path, hops: count }) => count === path.length - 1 && count <= maxHops)
      )
    }),
    500,
  )
})

t.test('bridges, reach and paths match their definitions where any of some edges may be open', async (t) => {
  holds(
    t,
    fc.property(anyGraph, fc.nat(63), fc.integer({ min: 1, max: 5 }), ({ nodes, edges }, mask, maxHops) => {
      const isOpen = (at: number, open: number) => at >= 6 || (open & (1 << at)) !== 0
      /** The graph with the edges that are certain, or among the first six are open. */
      const graphOf = (open: number): DrawnGraph => ({ nodes, edges: edges.filter((_, at) => isOpen(at, open)) })
      const graphs = [...Array(64).keys()].filter((open) => (open & mask) === mask).map(graphOf)
      const [all, certain] = [layOutGraph(graphOf(63)), layOutGraph(graphOf(mask))]
      const points = graphs.map((graph) => brute.articulationPoints(brute.undirected(graph)))
      const reach = [graphOf(mask), graphOf(63)].map((graph) => brute.reach(brute.directed(graph)))
      const ends = (paths: readonly number[][]) => new Set(paths.map((path) => `${path[0]} ${path.at(-1)}`))
      const [few, many] = [graphOf(mask), graphOf(63)].map((graph) => brute.paths(graph, [...nodes.keys()], maxHops))
      const known = ends(few!)
      const wanted = [...few!, ...many!.filter((path) => !known.has(`${path[0]} ${path.at(-1)}`))]
      const found = run(findPaths(all, [...nodes.keys()], maxHops, certain))
      const to = run(findPathsTo(all, [...nodes.keys()], maxHops, certain))
      const shown = (paths: readonly number[][]) => paths.map(String).sort().join(' ')
      return (
        run(rankReach(all, certain)).every(
          (row) =>
            row.is_articulation_point === points.some((one) => one[row.node]) &&
            row.isPerhapsOne === (row.is_articulation_point && !points.every((one) => one[row.node])) &&
            row.reachable_apps === reach[1]![row.node] &&
            row.reachedPerhaps === reach[1]![row.node]! - reach[0]![row.node]!,
        ) &&
        found.total === wanted.length &&
        found.undecided === wanted.length - few!.length &&
        (wanted.length > 50 || shown(found.paths.map(({ path }) => path)) === shown(wanted)) &&
        to.total === wanted.length &&
        to.undecided === found.undecided
      )
    }),
    500,
  )
})

t.test('of several shortest paths to a target the first is shown, whatever is found first', async (t) => {
  const graph = draw('b>z', 'c>z', 'g>b', 'd>c', 'x>g', 'x>d')
  const { paths } = run(findPathsTo(layOutGraph(graph), [graph.nodes.findIndex(({ app }) => app === 'z')], 3))
  t.equal(
    paths
      .at(-1)
      ?.path.map((node) => graph.nodes[node]!.app)
      .join(''),
    'xdcz',
  )
})

t.test('paths to targets, and all between starts and targets, match their definitions on any graph', async (t) => {
  const places = fc.array(fc.nat(7), { maxLength: 3 })
  holds(
    t,
    fc.property(anyGraph, places, places, fc.integer({ min: 1, max: 5 }), (graph, anyStarts, anyTargets, maxHops) => {
      const within = (list: number[]) => [...new Set(list)].filter((place) => place < graph.nodes.length)
      const [starts, targets] = [within(anyStarts), within(anyTargets)]
      const layout = layOutGraph(graph)
      const to = run(findPathsTo(layout, targets, maxHops))
      const all = brute.pathsTo(graph, targets, maxHops)
      const between = run(findPathsBetween(layout, starts, targets, maxHops))
      const every = brute.pathsBetween(graph, starts, targets, maxHops)
      const far = brute.distances(brute.directed(graph))
      const nearest = far.map((row) => Math.min(...targets.map((target) => row[target]!)))
      const shown = ({ paths }: { paths: { path: number[] }[] }) => paths.map(({ path }) => path).join(' ')
      return (
        to.total === all.length &&
        shown(to) === all.slice(0, 50).join(' ') &&
        between.isCounted &&
        between.total === every.length &&
        shown(between) === every.slice(0, 50).join(' ') &&
        [...countHopsTo(layout, targets)].join() === nearest.map((hops) => (hops === Infinity ? -1 : hops)).join()
      )
    }),
    500,
  )
})

t.test('a search for all paths ends in any graph, and says that it did not count them all', async (t) => {
  const nodes = Array.from({ length: 60 }, (_, i) => ({ app: String(i + 10), env: 'P' }))
  const edges = nodes.flatMap((_, from) => nodes.map((_, to) => ({ from, to, connections: 1 })))
  const layout = layOutGraph({ nodes, edges })
  const steps = findPathsBetween(layout, [0], [59], 10, 100_000)
  let turns = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) turns++
  t.ok(turns >= 9, 'it yields')
  const { paths, total, isCounted } = step.value
  t.same([paths.length, isCounted], [50, false])
  t.ok(total > 50)
  t.same(
    paths.slice(0, 2).map(({ path }) => path),
    [
      [0, 59],
      [0, 1, 59],
    ],
    'the shortest are there',
  )
})

t.test('the order of rows does not matter', async (t) => {
  holds(
    t,
    fc.property(
      anyGraph.chain((graph) => fc.tuple(fc.constant(graph), shuffled(graph.nodes), shuffled(graph.edges))),
      ([graph, nodes, edges]) => {
        const place = (old: number) => nodes.indexOf(graph.nodes[old]!)
        const moved = edges.map(({ from, to, connections }) => ({ from: place(from), to: place(to), connections }))
        const answers = ({ nodes, edges }: DrawnGraph, starts: number[]) => {
          const layout = layOutGraph({ nodes, edges })
          const { paths, total } = run(findPaths(layout, starts, 3))
          const named = paths.map(({ path }) => path.map((node) => nodes[node]))
          const rows = [...rank({ nodes, edges }).rows, ...run(rankReach(layout))]
          return JSON.stringify([named, total, rows.map(({ node: _, ...row }) => row)])
        }
        const starts = [...graph.nodes.keys()]
        return answers(graph, starts) === answers({ nodes, edges: moved }, starts.map(place))
      },
    ),
    100,
  )
})
const shuffled = <T>(items: readonly T[]) => fc.shuffledSubarray([...items], { minLength: items.length })

t.test('betweenness matches an independent library', async (t) => {
  const many = graphsOf(fc.record({ app: fc.nat(400).map(String), env: fc.constant('P') }), 60)
  const dense = many.chain((graph) => {
    const count = graph.nodes.length
    const place = fc.nat(Math.max(0, count - 1))
    // At exactly 128 edges the library is wrong: it keeps the bound of its 256 neighbours in a byte.
    const maxLength = Math.min(count * 3, 127)
    const pairs = fc.uniqueArray(fc.tuple(place, place), { maxLength, size: 'max', selector: String })
    return pairs.map((all) => ({ nodes: graph.nodes, edges: all.map(([from, to]) => ({ from, to, connections: 1 })) }))
  })
  holds(
    t,
    fc.property(dense, (graph) => {
      if (graph.nodes.length < 3) return true
      const theirs = new UndirectedGraph()
      for (const node of graph.nodes.keys()) theirs.addNode(node)
      for (const { from, to } of graph.edges) if (from !== to) theirs.mergeEdge(from, to)
      const expected = libraryBetweenness(theirs, { getEdgeWeight: null })
      const { neighbours, placed } = layOutGraph(graph)
      const ours = run(measureBetweenness(neighbours))
      return graph.nodes.every((_, place) => Math.abs(ours[placed[place]!]! - expected[place]!) < 1e-9)
    }),
    100,
  )
})

t.test('betweenness to the last bit, whichever side a level is reached from', async (t) => {
  const COUNT = 300
  const node = fc.nat(COUNT - 1)
  /** Hubs, chains, clusters and stray edges, so that levels are small and large in all orders. */
  const shape = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('hub'), at: node, length: fc.integer({ min: 1, max: COUNT - 1 }) }),
      fc.record({ kind: fc.constant('chain'), at: node, length: fc.integer({ min: 1, max: 60 }) }),
      fc.record({ kind: fc.constant('cluster'), at: node, length: fc.integer({ min: 2, max: 40 }) }),
      fc.record({ kind: fc.constant('edge'), at: node, length: fc.integer({ min: 1, max: COUNT - 1 }) }),
    ),
    { maxLength: 30, size: 'max' },
  )
  const draw = (parts: { kind: string; at: number; length: number }[]) => {
    const pairs = new Set<number>()
    const join = (from: number, to: number) => {
      const [a, b] = [from % COUNT, to % COUNT]
      if (a !== b) pairs.add(Math.min(a, b) * COUNT + Math.max(a, b))
    }
    for (const { kind, at, length } of parts) {
      if (kind === 'edge') join(at, at + length)
      for (let i = 0; kind === 'hub' && i < length; i++) join(at, at + 7 * i)
      for (let i = 0; kind === 'chain' && i < length; i++) join(at + 11 * i, at + 11 * (i + 1))
      for (let i = 0; kind === 'cluster' && i < length; i++) for (let j = 0; j < i; j++) join(at + i, at + j)
    }
    const all = [...pairs]
    const along = buildAdjacency(
      COUNT,
      Uint32Array.from(all, (pair) => Math.floor(pair / COUNT)),
      Uint32Array.from(all, (pair) => pair % COUNT),
    )
    return uniteAdjacency(along, reverseAdjacency(along))
  }
  const bits = (figures: Float64Array) => Buffer.from(figures.buffer).toString('base64')
  holds(
    t,
    fc.property(shape, (parts) => {
      const neighbours = draw(parts)
      return bits(run(measureBetweenness(neighbours))) === bits(brute.plainBetweenness(neighbours))
    }),
    100,
  )
})

/** Levels of three, each node joined to the three of the next: from end to end there are 3 to the power of `length - 2` paths. */
function ladder(length: number) {
  const [from, to]: [number[], number[]] = [[], []]
  for (let node = 0; node < (length - 1) * 3; node++)
    for (let next = 0; next < 3; next++) to[from.push(node) - 1] = 3 * (Math.floor(node / 3) + 1) + next
  const along = buildAdjacency(length * 3, Uint32Array.from(from), Uint32Array.from(to))
  return uniteAdjacency(along, reverseAdjacency(along))
}

t.test('more shortest paths than a number can represent', async (t) => {
  const LENGTH = 660
  const between = run(measureBetweenness(ladder(LENGTH)))
  const pairs = (3 * LENGTH - 1) * (3 * LENGTH - 2)
  // A pair from both sides of a level passes one of its three nodes; two nodes of one level meet in any of the levels beside it.
  const beside = (level: number) =>
    level < 0 || level >= LENGTH ? 0 : 3 / (level === 0 || level === LENGTH - 1 ? 3 : 6)
  const expected = Array.from(between, (_, node) => {
    const level = Math.floor(node / 3)
    return (2 * (3 * level * (LENGTH - 1 - level) + beside(level - 1) + beside(level + 1))) / pairs
  })
  t.ok(near([...between], expected), `${between[990]} is ${expected[990]}`)
})

t.test('one path next to 10^480 others', async (t) => {
  const LENGTH = 1010
  const first = LENGTH * 3
  const beads = ladder(LENGTH)
  const [from, to]: [number[], number[]] = [[], []]
  for (let node = 0; node < first; node++)
    for (let edge = beads.starts[node]!; edge < beads.starts[node + 1]!; edge++)
      to[from.push(node) - 1] = beads.targets[edge]!
  for (let node = first; node < first + LENGTH; node++) to[from.push(node) - 1] = node === first ? 0 : node - 1
  const along = buildAdjacency(first + LENGTH, Uint32Array.from(from), Uint32Array.from(to))
  const between = run(measureBetweenness(uniteAdjacency(along, reverseAdjacency(along))))
  const pairs = (first + LENGTH - 1) * (first + LENGTH - 2)
  const chain = Array.from({ length: LENGTH }, (_, i) => (2 * (LENGTH - 1 - i) * (first + i)) / pairs)
  t.ok(near([...between.subarray(first)], chain), 'what hangs on it still counts')
})

t.test('a chain of 100,000 applications', async (t) => {
  const LENGTH = 100_000
  const nodes = Array.from({ length: LENGTH }, (_, i) => ({ app: String(i + LENGTH), env: 'P' }))
  const edges = nodes.slice(1).map((_, i) => ({ from: i, to: i + 1, connections: 1 }))
  const layout = layOutGraph({ nodes, edges })
  const cuts = run(findArticulationPoints(layout.neighbours))
  t.equal(cuts.indexOf(1), 1)
  t.equal(cuts.lastIndexOf(1), LENGTH - 2)
  t.equal(
    cuts.reduce((sum, is) => sum + is, 0),
    LENGTH - 2,
  )
  const reach = run(countReachable(layout.outgoing))
  t.ok(reach.every((count, node) => count === LENGTH - 1 - node))
  const { total, paths } = run(findPaths(layout, [0], LENGTH))
  t.equal(total, LENGTH - 1)
  t.equal(paths[0]?.hops, LENGTH - 1)
})

t.test('reach across batches of targets, with cycles in the graph', async (t) => {
  const COUNT = 3000
  // Rings of seven, each leading to the ring three further on: a ring reaches every third one after it.
  const nodes = Array.from({ length: COUNT }, (_, i) => ({ app: String((i * 7919) % COUNT), env: 'P' }))
  const ring = (node: number) => Math.floor(node / 7)
  const rings = ring(COUNT - 1) + 1
  const size = (which: number) => Math.min(7, COUNT - which * 7)
  const edges = nodes.flatMap((_, i) => {
    const within = ring(i + 1) === ring(i) && i + 1 < COUNT ? i + 1 : ring(i) * 7
    const onward = i % 7 === 0 && i + 21 < COUNT ? [{ from: i, to: i + 21, connections: 1 }] : []
    return [{ from: i, to: within, connections: 1 }, ...onward]
  })
  const layout = layOutGraph({ nodes, edges })
  const reach = run(countReachable(layout.outgoing))
  const expected = (node: number) => {
    let sum = -1
    for (let which = ring(node); which < rings; which += 3) sum += size(which)
    return sum
  }
  t.ok(nodes.every((_, i) => reach[layout.placed[i]!] === expected(i)))
})

t.test('a long calculation yields to others and stops with its call', async (t) => {
  function* forever(): Steps<never> {
    for (;;) yield
  }
  const ending = new AbortController()
  let others = 0
  setImmediate(function look() {
    if (++others < 3) setImmediate(look)
    else ending.abort(new Error('the caller is gone'))
  })
  await t.rejects(workInTurns(forever(), ending.signal), { message: 'the caller is gone' })
  t.equal(others, 3)

  let started = false
  const never = function* (): Steps<void> {
    started = true
    yield
  }
  await t.rejects(workInTurns(never(), AbortSignal.abort(new Error('too late'))), { message: 'too late' })
  t.notOk(started, 'what was cancelled before is not begun')

  const result = await workInTurns(rankReach(layOutGraph(CHAIN)), new AbortController().signal)
  t.equal(result[0]?.app, 'a')
})

t.test('every long calculation yields often', async (t) => {
  const nodes = Array.from({ length: 20_000 }, (_, i) => ({ app: String(i), env: 'P' }))
  const edges = nodes.slice(1).map((_, i) => ({ from: i, to: i + 1, connections: 1 }))
  const layout = layOutGraph({ nodes, edges })
  const small = layOutGraph({ nodes: nodes.slice(0, 300), edges: edges.slice(0, 299) })
  const count = (steps: Steps<unknown>) => [...steps].length
  t.equal(count(measureBetweenness(small.neighbours)), 300)
  t.equal(count(findPaths(small, [...small.nodes.keys()], 2)), 300)
  t.ok(count(findArticulationPoints(layout.neighbours)) >= 10)
  t.ok(count(countReachable(layout.outgoing)) >= 1000)
  t.equal(count(rankInfrastructure({ nodes: nodes.slice(0, 300), edges: edges.slice(0, 299) }, PRODUCTION)), 300)
})
