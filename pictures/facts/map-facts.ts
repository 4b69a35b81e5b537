import { countOf, decisionOf, wholeNumber, windowInWords, type Decision } from '../picture.js'
import type { TrafficSummary } from '../../tools/answers/traffic/show-summary.js'

/**
 * A node of the map: a group of workloads with the same labels, or a node outside the envs, such as an IP list, a
 * domain, or all sources and destinations without labels.
 */
export interface MapGroup {
  /** The name as it is in the answer: `payments (prod)`. */
  name: string
  kind: 'group' | 'external' | 'unlabelled'
  /** The part of the name in brackets; empty if the name has no brackets. */
  env: string
  /** The number of inbound and outbound connections of the node, as far as the tool result shows them. */
  connections: number
  /** The names of the groups that this node stands for; present only if several groups were folded into the node. */
  folded?: readonly string[]
}

/**
 * The traffic between two groups that got the same policy decision. `from` and `to` are indexes into the list of
 * groups.
 */
export interface MapEdge {
  from: number
  to: number
  decision: Decision
  connections: number
}

/** The groups of a map, and the traffic between them. */
export interface MapFacts {
  groups: readonly MapGroup[]
  edges: readonly MapEdge[]
  notes: readonly string[]
}

/** The parts of an answer of get-traffic-flows-summary that a map needs. */
export type MapAnswer = Pick<TrafficSummary, 'app_to_app' | 'section_totals' | 'totals' | 'window' | 'truncation_note'>

const OUTSIDE = 'external:'
const UNLABELLED = 'unlabelled'

/** Reads the part of the result that is about traffic between applications. `notes` says what the map does not show. */
export function readMap(answer: MapAnswer): MapFacts {
  const { app_to_app: rows = [], section_totals: sections, totals, window } = answer
  const groups: MapGroup[] = []
  const places = new Map<string, number>()
  const placeOf = (name: string) => {
    const known = places.get(name)
    if (known !== undefined) return known
    places.set(name, groups.length)
    return groups.push({ name, ...kindOf(name), connections: 0 }) - 1
  }
  const edges = rows.map(({ from, to, policy, connections }): MapEdge => {
    const edge = { from: placeOf(from), to: placeOf(to), decision: decisionOf(policy), connections }
    groups[edge.from]!.connections += connections
    groups[edge.to]!.connections += connections
    return edge
  })
  const left = sections.app_to_app - rows.length
  return {
    groups,
    edges,
    notes: [
      `Traffic ${windowInWords(window)}: ${countOf(totals.rows, 'row')} with ${countOf(totals.connections, 'connection')}; traffic inside a group is not drawn.`,
      ...(left > 0
        ? [
            `Of ${wholeNumber(sections.app_to_app)} lines between groups the busiest ${wholeNumber(rows.length)} are here; ${wholeNumber(left)} are not.`,
          ]
        : []),
      ...(totals.truncated
        ? ['The row limit of the PCE was reached: there is more traffic than this, and all counts are lower bounds.']
        : []),
      ...(totals.coverage_note === undefined ? [] : [totals.coverage_note]),
      ...(rows.length === 0 ? ['No traffic between groups was seen.'] : []),
    ],
  }
}

function kindOf(name: string): Pick<MapGroup, 'kind' | 'env'> {
  if (name === UNLABELLED || name === '-') return { kind: 'unlabelled', env: '' }
  if (name.startsWith(OUTSIDE)) return { kind: 'external', env: '' }
  const open = name.endsWith(')') ? name.lastIndexOf(' (') : -1
  return { kind: 'group', env: open === -1 ? '' : name.slice(open + 2, -1) }
}

/**
 * Returns the name of a group without its environment, which is shown next to it. For a node outside the environments,
 * returns the whole name.
 */
export function shortName({ name, kind, env }: MapGroup): string {
  if (kind === 'external') return name.slice(OUTSIDE.length)
  if (kind === 'unlabelled') return 'no labels'
  return env === '' ? name : name.slice(0, -(env.length + 3))
}

/**
 * Folds a map with more than `most` groups: the busiest groups stay, and the other groups of each env become one node.
 * If there are more than `outside` IP lists and domains, they are folded in the same way. Connections within a folded
 * node are not drawn. Returns `map` itself if nothing needs folding.
 */
export function foldMap(map: MapFacts, most: number, outside: number): MapFacts {
  const busiest = (isInside: boolean, limit: number) => {
    const of = map.groups.flatMap((group, at) => ((group.kind === 'external') === isInside ? [] : [at]))
    const ranked = of.sort((a, b) => map.groups[b]!.connections - map.groups[a]!.connections || a - b)
    return ranked.length <= limit ? ranked : ranked.slice(0, limit - 1)
  }
  const kept = new Set([...busiest(true, most), ...busiest(false, outside)])
  if (kept.size === map.groups.length) return map
  const groups: (Omit<MapGroup, 'folded'> & { folded?: string[] })[] = []
  const places = new Map<string, number>()
  const placeOf = map.groups.map((group, at) => {
    if (kept.has(at)) return groups.push({ ...group, folded: undefined }) - 1
    const key = `${group.kind} ${group.env}`
    const known = places.get(key)
    const place = known ?? groups.push({ ...group, name: '', connections: 0, folded: [] }) - 1
    places.set(key, place)
    groups[place]!.connections += group.connections
    groups[place]!.folded!.push(group.name)
    return place
  })
  const edges = new Map<string, MapEdge>()
  for (const edge of map.edges) {
    const [from, to] = [placeOf[edge.from]!, placeOf[edge.to]!]
    if (from === to) continue
    const key = `${from} ${to} ${edge.decision}`
    const known = edges.get(key)
    if (known === undefined) edges.set(key, { ...edge, from, to })
    else known.connections += edge.connections
  }
  const alone = (group: MapGroup) =>
    group.folded?.length === 1 ? map.groups.find(({ name }) => name === group.folded![0])! : group
  return { ...map, groups: groups.map(alone), edges: [...edges.values()] }
}
