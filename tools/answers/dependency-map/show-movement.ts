import { Type } from '@sinclair/typebox'
import {
  decisionsOf,
  HIGH_RISK_PORTS,
  type EdgePortCollector,
} from '../../../domain/dependency-map/collect-app-graph.js'
import {
  edgesOfPaths,
  isAsked,
  riskiestEdges,
  viewOf,
  type AppFilter,
  type Movement,
  type MovementQuestion,
} from '../../../domain/dependency-map/search-movement.js'
import type { PassageDoubts } from '../../../domain/policy/judge-passage.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { applicationKey, applicationName } from '../../../domain/traffic/applications.js'
import type { Reading } from '../../../domain/traffic/read-flows.js'
import { Count, Counts, Flag, Total } from '../../../schemas/common.js'
import { showAssumed } from '../../../schemas/assumes.js'
import type { Limits } from '../../../schemas/config.js'
import { explainRecorded, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { adviseOnRows } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'

const Reachable = Count('Other applications it reaches over any number of hops, undecided edges included')

const Perhaps = Type.Optional(Count('Of these, only over undecided edges'))
const PerhapsOne = Type.Optional(Flag('Undecided edges decide whether it is one'))

const Edges = (description: string) =>
  Type.Array(
    Type.Object({
      from: Type.String(),
      to: Type.String(),
      connections: Type.Integer(),
      ports: Type.Array(Type.String(), { description: 'Busiest 10, blocked flows left out' }),
      ports_total: Total,
      high_risk_ports: Type.Array(Type.Integer(), { description: `In use, of ${HIGH_RISK_PORTS.join(', ')}` }),
      policy_decisions: Counts('Connections by what policy in force decides'),
      undecided: Type.Optional(Flag('Nothing on it is certain to pass')),
    }),
    { description },
  )

/** The parts of an answer about lateral movement. The last two exist only if a start or target was given. */
export const MOVEMENT_PARTS = [
  'high_risk_bridge_nodes',
  'top_reachable_nodes',
  'high_risk_edges',
  'paths',
  'path_edges',
] as const

/** The lists of an answer about lateral movement. Nodes are written as `app|env`. */
export const MovementLists = {
  high_risk_bridge_nodes: Type.Optional(
    Type.Array(
      Type.Object({
        app: Type.String(),
        env: Type.String(),
        is_articulation_point: Flag('Always true: it links otherwise separate parts, perhaps if undecided'),
        undecided: PerhapsOne,
        reachable_apps: Reachable,
        reachable_undecided: Perhaps,
        direct_connections_out: Count('Applications one hop on'),
        direct_connections_in: Count('Applications one hop back'),
        direct_undecided_out: Perhaps,
        direct_undecided_in: Perhaps,
      }),
      { description: 'Articulation points, farthest reach first' },
    ),
  ),
  top_reachable_nodes: Type.Optional(
    Type.Array(
      Type.Object({
        app: Type.String(),
        env: Type.String(),
        reachable_apps: Reachable,
        reachable_undecided: Perhaps,
        is_bridge_node: Flag('It is an articulation point'),
        bridge_undecided: PerhapsOne,
      }),
      { description: 'Farthest reach first' },
    ),
  ),
  high_risk_edges: Type.Optional(Edges('Busiest on remote administration and file sharing ports, at most 10')),
  high_risk_edges_total: Total,
  paths_from: Type.Optional(Type.Array(Type.String(), { description: 'Start nodes' })),
  paths_to: Type.Optional(Type.Array(Type.String(), { description: 'Target nodes' })),
  sources_by_hops: Type.Optional(Counts('Applications by hops to the nearest target, over any number of hops')),
  sources_by_hops_undecided: Type.Optional(Counts('Of these, the ones that are so near only over undecided edges')),
  unlabelled_sources: Type.Optional(
    Count('Addresses without app or env label whose traffic to a target may pass; no path shows them'),
  ),
  max_hops: Type.Optional(Count('Most hops of a path')),
  paths: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.Array(Type.String(), { description: 'app|env' }),
        hops: Count('Edges of the path'),
        undecided: Type.Optional(Flag('An edge of it is undecided')),
      }),
      {
        description:
          'From the start: one to each node, longest first. To the target: one from each node; between both: all; shortest first. One of each is the shortest without undecided edges if there is one. At most 50',
      },
    ),
  ),
  paths_total: Type.Optional(Total),
  paths_undecided: Type.Optional(Count('Of these, those over an undecided edge')),
  paths_uncounted: Type.Optional(Flag('There may be more than paths_total and paths_undecided')),
  truncated: Type.Optional(Flag('Paths are not shown, or flows_truncated')),
  path_edges: Type.Optional(Edges('Edges of these paths')),
}

/** Maximum number of rows of each list, by level of detail. */
const SHOWN = {
  standard: { bridges: 10, nodes: 10, riskyEdges: 10 },
  full: { bridges: 500, nodes: 500, riskyEdges: 500 },
} as const
const PORTS_SHOWN = 10
const OF_PATHS =
  'Fewer max_hops have fewer paths; without a start and a target, detail_level full shows more of the other lists.'

interface MovementFacts {
  days: number
  /** Number of traffic rows whose source and destination belong to two different applications. */
  between: number
  found: Movement
  question: MovementQuestion
  ports: EdgePortCollector
  /** Number of addresses that belong to no application but have traffic to a target. They do not appear in any path. */
  unlabelledSources?: number | undefined
  reading: Reading
  doubts: PassageDoubts
}

/**
 * Builds the answer of detect-lateral-movement-paths (T18). The counts of nodes and edges cover all applications; the
 * lists contain only the applications that the caller asked about (D118).
 */
export function showMovement(
  { days, between, found, question, ports, unlabelledSources, reading, doubts }: MovementFacts,
  {
    chosen,
    detail,
    limits,
  }: { chosen: Sections<(typeof MOVEMENT_PARTS)[number]>; detail: 'standard' | 'full'; limits: Limits },
) {
  const { nodes, edges, paths } = found
  // If paths were requested, the other lists stay short to leave room for them.
  const most = SHOWN[found.paths === null ? detail : 'standard']
  const keys = nodes.map(applicationKey)
  const view = viewOf(found, question)
  const ranked = found.reach.filter(({ node }) => view.node(node))
  const bridges = ranked.filter((row) => row.is_articulation_point)
  const risky = riskiestEdges(found, view, ports.risky(), most.riskyEdges)
  const hops = edgesOfPaths(found)
  const shownEdges = new Set([
    ...(chosen.has('high_risk_edges') ? risky.edges : []),
    ...(chosen.has('path_edges') ? hops.numbers : []),
  ])
  const portsOf = ports.of(shownEdges, PORTS_SHOWN)
  const decided = decisionsOf(found.decisions, shownEdges)
  const showEdge = (number: number) => ({
    from: keys[edges.from[number]!]!,
    to: keys[edges.to[number]!]!,
    connections: edges.connections[number]!,
    ...portsOf.get(number)!,
    policy_decisions: decided.get(number)!,
    ...isUndecided(number),
  })
  /** Ports and decisions are looked up only for edges in the lists that the caller chose. */
  const edgesIn = (part: (typeof MOVEMENT_PARTS)[number], numbers: readonly number[]) =>
    chosen.has(part) ? numbers.map(showEdge) : []
  const isUndecided = (number: number | undefined) => found.undecidedEdges.has(number ?? -1) && { undecided: true }
  const showPath = ({ path, hops: length }: { path: number[]; hops: number }) => ({
    path: path.map((at) => keys[at]!),
    hops: length,
    ...(path.some((at, hop) => hop > 0 && isUndecided(hops.between(path[hop - 1]!, at))) && { undecided: true }),
  })
  const message = [explain(found, question, reading), ...tellDoubts(found, doubts)].filter(Boolean).join(' ')
  const undecided = paths?.undecided ?? paths?.paths.filter((one) => 'undecided' in showPath(one)).length ?? 0
  const perhapsPoints = countPerhaps(found.reach)
  const keysOf = (places: readonly number[]) => places.map((at) => keys[at]!).sort()
  const envelope = {
    lookback_days: days,
    total_apps: nodes.length,
    total_edges: edges.from.length - found.blockedEdges,
    blocked_edges: found.blockedEdges,
    ...(found.undecidedEdges.size > 0 && { undecided_edges: found.undecidedEdges.size }),
    app_to_app_flows: between,
    articulation_points: found.reach.filter((row) => row.is_articulation_point).length,
    ...(perhapsPoints > 0 && { articulation_points_undecided: perhapsPoints }),
    high_risk_edges_total: risky.total,
    ...(paths !== null && {
      max_hops: question.maxHops,
      paths_total: paths.total,
      ...(undecided > 0 && { paths_undecided: undecided }),
      ...(!paths.isCounted && { paths_uncounted: true }),
    }),
    ...(paths?.starts === null && showHops(found)),
    ...(unlabelledSources !== undefined && { unlabelled_sources: unlabelledSources }),
    recommendation: recommend(found, question, {
      bridges: bridges.length,
      perhapsBridges: countPerhaps(bridges),
      risky: risky.total,
      reading,
    }),
    ...(message !== '' && { message }),
    ...showRecorded(doubts.recorded),
    ...showAssumed(doubts.assumes),
    ...reading,
  }
  const sections = {
    high_risk_bridge_nodes: {
      rows: bridges
        .slice(0, most.bridges)
        .map(({ node: _node, isPerhapsOne, reachedPerhaps, directPerhaps, ...row }) => ({
          ...row,
          ...(isPerhapsOne && { undecided: true }),
          ...(reachedPerhaps > 0 && { reachable_undecided: reachedPerhaps }),
          ...(directPerhaps.out > 0 && { direct_undecided_out: directPerhaps.out }),
          ...(directPerhaps.in > 0 && { direct_undecided_in: directPerhaps.in }),
        })),
      total: bridges.length,
    },
    top_reachable_nodes: {
      rows: ranked.slice(0, most.nodes).map((row) => ({
        app: row.app,
        env: row.env,
        reachable_apps: row.reachable_apps,
        ...(row.reachedPerhaps > 0 && { reachable_undecided: row.reachedPerhaps }),
        is_bridge_node: row.is_articulation_point,
        ...(row.isPerhapsOne && { bridge_undecided: true }),
      })),
      total: ranked.length,
    },
    high_risk_edges: { rows: edgesIn('high_risk_edges', risky.edges), total: risky.total },
    ...(paths !== null && {
      ...(paths.starts !== null && { paths_from: all(keysOf(paths.starts)) }),
      ...(paths.targets !== null && { paths_to: all(keysOf(paths.targets)) }),
      paths: {
        rows: paths.paths.map(showPath),
        total: paths.total,
      },
      path_edges: { rows: edgesIn('path_edges', hops.numbers), total: hops.numbers.length },
    }),
  }
  const answer = showChosen(chosen, envelope, sections, {
    detail,
    limits,
    // Even at detail `standard`, this list may have 100 rows: there may be 50 paths, and a path is useful only if the
    // list contains its edges.
    standard: 100,
    hint: (_shown, isFull) =>
      `Totals count everything. ${paths === null ? adviseOnRows(detail, isFull, 'env_name narrows it.') : OF_PATHS}`,
  })
  if (paths === null) return answer
  const isCut = !paths.isCounted || (answer.paths?.length ?? 0) < paths.total
  return { ...answer, truncated: reading.flows_truncated || isCut }
}

const countPerhaps = (rows: Movement['reach']) => rows.filter(({ isPerhapsOne }) => isPerhapsOne).length

const all = <T>(rows: readonly T[]) => ({ rows, total: rows.length })

/**
 * Counts the applications by their number of hops to the nearest target, without the targets themselves.
 * `sources_by_hops_undecided` counts those of them for which every shortest path has an edge that may be blocked.
 */
function showHops({ hopsToTarget, certainHops }: Movement) {
  const all: Record<string, number> = {}
  const perhaps: Record<string, number> = {}
  hopsToTarget?.forEach((hops, node) => {
    if (hops <= 0) return
    all[hops] = (all[hops] ?? 0) + 1
    if (certainHops?.[node] !== hops) perhaps[hops] = (perhaps[hops] ?? 0) + 1
  })
  return {
    sources_by_hops: all,
    ...(Object.keys(perhaps).length > 0 && { sources_by_hops_undecided: perhaps }),
  }
}

function explain({ nodes, paths }: Movement, { maxHops }: MovementQuestion, reading: Reading): string | null {
  if (reading.analysed.rows === 0) return 'No flows in the window.'
  if (nodes.length === 0) return 'No flow has app and env labels on both ends, so there is nothing to follow.'
  if (paths === null) return null
  const { starts, targets, total } = paths
  const idle = Object.entries({ start: starts, target: targets }).flatMap(([end, list]) =>
    list?.length === 0 ? [end] : [],
  )
  if (idle.length > 0)
    return `The ${idle.join(' and the ')} ${idle.length > 1 ? 'have' : 'has'} no flow to or from another labelled application in the window.`
  if (total > 0 || !paths.isCounted) return null
  const [from, to] = [
    starts === null ? 'another labelled application' : 'the start',
    targets === null ? 'another labelled application' : `the target in ${countOf(maxHops, 'hop')}`,
  ]
  return `No flow leads from ${from} to ${to} except what is blocked; hosts without app or env label are not followed.`
}

/**
 * Returns sentences about edges that count as open although they may be blocked, and about how reliable the decisions
 * are.
 */
function tellDoubts({ undecidedEdges }: Movement, { because, recorded, modes }: PassageDoubts): string[] {
  const count = undecidedEdges.size
  const what =
    count > 0
      ? `${countOf(count, 'edge')} ${count === 1 ? 'is' : 'are'} followed as open but may be blocked`
      : 'Some flows that count as open may be blocked'
  return [...(because === '' ? [] : [`${what}: ${because}.`]), ...modes, explainRecorded(recorded)]
}

/**
 * Recommends what to do next. `bridges` is the number of articulation points; `perhapsBridges` of them are not certain.
 * `risky` is the number of risky edges. All three refer to the part of the graph that was asked about: all
 * applications, one env, or the applications that lead to a target.
 */
function recommend(
  { nodes, paths, hopsToTarget, certainHops }: Movement,
  { start, target, maxHops }: MovementQuestion,
  {
    bridges,
    perhapsBridges,
    risky,
    reading,
  }: { bridges: number; perhapsBridges: number; risky: number; reading: Reading },
): string {
  const isPartial = reading.flows_truncated
  const missing = isPartial ? ' in the rows read; the missing rows may have some' : ''
  if (hopsToTarget !== null) {
    const within = (hops: number) => hops > 0 && hops <= maxHops
    const near = hopsToTarget.filter(within).length
    const direct = hopsToTarget.filter((hops) => hops === 1).length
    const undecided = near - (certainHops?.filter(within).length ?? 0)
    const perhaps = undecided === 0 ? '' : `, ${undecided} of them only over edges that may be blocked`
    const name = quote(nameOf(target))
    return [
      near > 0
        ? `Ringfence ${name} first: ${countOf(near, 'labelled application')} can reach it within ${countOf(maxHops, 'hop')}, ${direct} directly${perhaps}.`
        : `No labelled application can reach ${name} within ${countOf(maxHops, 'hop')}${missing}.`,
      ...passedByAll(nodes, paths),
      ...(risky > 0
        ? [`Restrict remote administration and file sharing on ${countOf(risky, 'edge')} on the way to it.`]
        : []),
    ].join(' ')
  }
  const where = start.app !== undefined || !isAsked(start) ? '' : ` of env ${quote(start.env ?? '')}`
  const perhaps =
    perhapsBridges === 0
      ? ''
      : `, ${bridges === perhapsBridges ? 'but' : `${perhapsBridges} of them`} only perhaps, depending on edges that may be blocked`
  const advice = [
    bridges > 0
      ? `Ringfence the ${countOf(bridges, 'articulation point')}${where} first: each connects parts that would otherwise be separate${perhaps}.`
      : `No labelled application${where} connects parts that would otherwise be separate${isPartial ? ', in the rows read' : ''}.`,
    risky > 0
      ? `Restrict remote administration and file sharing on ${countOf(risky, 'edge')} between labelled applications${where}.`
      : `No remote administration or file sharing between labelled applications${where} is open${missing}.`,
  ]
  return advice.join(' ')
}

/** Names the applications through which every path from a start to a target leads, if all paths are known. */
function passedByAll(nodes: Movement['nodes'], paths: Movement['paths']): string[] {
  const [first, ...others] = paths?.paths ?? []
  if (paths?.starts == null || first === undefined || !paths.isCounted || paths.total > others.length + 1) return []
  const passed = first.path.slice(1, -1).filter((place) => others.every(({ path }) => path.includes(place)))
  if (passed.length === 0) return []
  return [`Every path passes ${passed.map((place) => quote(applicationName(nodes[place]!))).join(', ')}.`]
}

function nameOf({ app, env }: AppFilter): string {
  if (app !== undefined && env !== undefined) return applicationName({ app, env })
  return app === undefined ? `env=${env}` : `app=${app}`
}
