import { foldMap, shortName, type MapEdge, type MapFacts, type MapGroup } from '../facts/map-facts.js'
import { curveAcross, curveBetween, thicknessScale } from '../layout/draw-lines.js'
import { boundsOf, packInRows, placeBoxes, type Box } from '../layout/place-boxes.js'
import type { Markup } from '../markup.js'
import { BOLD, measureText } from '../measure-text.js'
import {
  countOf,
  DECISION_WORDS,
  DECISIONS,
  shortNumber,
  type Decision,
  type Drawing,
  type Picture,
  quoted,
} from '../picture.js'
import {
  arrowHeads,
  box,
  classOf,
  element,
  fragment,
  group,
  headOf,
  label,
  legendOfDecisions,
  sample,
} from './shapes.js'

const SIZE = { height: 38, least: 76, most: 190, outside: 190 }
/**
 * Distances between elements of the drawing, in pixels: around the groups of an environment, between environments, and
 * between the environments and the nodes outside them.
 */
const PAD = { env: 18, head: 30, between: 40, rim: 130, edge: 16 }
/** By default, a map with more groups than this is folded. */
export const MOST_GROUPS = 30
const MOST_OUTSIDE = 14
/** If the markup of a drawing has more characters than this, the drawing may be too large for a page. */
const LARGE = 500_000

export interface MapOptions {
  /** The number of groups above which a map is folded. With Infinity, no map is folded. */
  most?: number
  /** If true, a folded map also has an unfolded view. */
  withWhole?: boolean
}

/**
 * Draws the application map: groups within the regions of their envs, sources outside the envs on the left,
 * destinations outside the envs on the right.
 */
export function drawMap(facts: MapFacts, { most = MOST_GROUPS, withWhole = true }: MapOptions = {}): Picture {
  const folded = foldMap(facts, most, most === Infinity ? Infinity : MOST_OUTSIDE)
  const isFolded = folded !== facts
  const inside = facts.groups.filter(({ kind }) => kind === 'group').length
  const shown = folded.groups.filter((one) => one.folded === undefined).length
  const all = `All ${facts.groups.length}`
  const first = drawGroups(folded, 'm0')
  // The first view has the requested number of groups. If this view may be too large for a page, the picture also gets
  // a view with fewer groups, which can take its place.
  const instead = withWhole && first.content.text.length > LARGE ? foldMap(facts, MOST_GROUPS, MOST_OUTSIDE) : facts
  const further = `“Folded further” has the ${MOST_GROUPS - 1} busiest groups; the others are folded, those of an env into one node.`
  const decisions = new Set(facts.edges.map(({ decision }) => decision))
  return {
    kind: 'map',
    title: 'Application map',
    notes: [
      `${countOf(inside, 'group')} of workloads with the same labels, ${countOf(facts.groups.length - inside, 'end')} outside of them.`,
      ...(isFolded
        ? [`The ${shown} busiest stand for themselves; the others are folded, those of an env into one node.`]
        : []),
      ...facts.notes,
    ],
    warnings: [],
    views: [
      { name: isFolded ? 'Folded' : 'Map', drawing: first },
      ...(isFolded && withWhole
        ? [{ name: all, drawing: drawGroups(facts, 'm1'), note: `“${all}” unfolds them.` }]
        : []),
      ...(instead === facts ? [] : [{ name: 'Folded further', drawing: drawGroups(instead, 'm2'), note: further }]),
    ],
    legend: [
      ...legendOfDecisions(decisions),
      {
        sample: sample(
          element('path', { class: 'edge unknown', 'stroke-width': 1, d: 'M1 3H33' }),
          element('path', { class: 'rule', 'stroke-width': 5, d: 'M1 9H33' }),
        ),
        text: 'the thicker, the more connections',
      },
      {
        sample: sample(box({ x: 1, y: 1, width: 32, height: 10 }, 'outside nameless', 5)),
        text: 'not labelled: unmanaged, or unknown',
      },
      ...(isFolded || instead !== facts
        ? [{ sample: sample(box({ x: 1, y: 1, width: 32, height: 10 }, 'fold', 3)), text: 'several, folded' }]
        : []),
    ],
    tables: [tableOf(facts)],
  }
}

function tableOf({ groups, edges }: MapFacts) {
  return {
    caption: 'Traffic between groups, busiest first',
    columns: [{ name: 'From' }, { name: 'To' }, { name: 'Decision' }, { name: 'Connections', isNumber: true as const }],
    rows: edges.map(({ from, to, decision, connections }) => ({
      cells: [groups[from]!.name, groups[to]!.name, DECISION_WORDS[decision], connections],
      decision,
    })),
  }
}

type Side = 'left' | 'right'

function drawGroups({ groups, edges }: MapFacts, prefix: string): Drawing {
  const places = layOut(groups, edges)
  const { left, top, right, bottom } = boundsOf([...places.boxes, ...places.regions.map(({ box: region }) => region)])
  const [width, height] = [right - left + 2 * PAD.edge, bottom - top + 2 * PAD.edge]
  const [dx, dy] = [PAD.edge - left, PAD.edge - top]
  const moved = <B extends Box>(one: B): B => ({ ...one, x: one.x + dx, y: one.y + dy })
  const boxes = places.boxes.map(moved)
  const regions = places.regions.map(({ name, box: region }) => ({ name, ...moved(region) }))
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    content: fragment([
      arrowHeads(prefix),
      ...regions.map((region) => box(cornerOf(region), 'panel', 10)),
      ...BOTTOM_UP.map((decision) => drawEdges({ groups, edges }, boxes, decision, prefix)),
      ...regions.map((region) => drawName(region)),
      ...groups.map((one, at) => drawGroup(one, boxes[at]!, at)),
    ]),
  }
}

const nameOf = (one: MapGroup): string =>
  one.folded === undefined ? shortName(one) : `${one.folded.length} more${one.kind === 'external' ? ' outside' : ''}`

function widthOf(one: MapGroup): number {
  if (one.kind !== 'group') return SIZE.outside
  const text = Math.max(measureText(nameOf(one), 12) * BOLD, measureText(subtitleOf(one), 10.5))
  return Math.min(SIZE.most, Math.max(SIZE.least, text + 22))
}

const subtitleOf = ({ connections }: MapGroup) => `${shortNumber(connections)} conn.`

/** Computes the positions of all elements. The origin of the coordinates is arbitrary. */
function layOut(groups: readonly MapGroup[], edges: readonly MapEdge[]) {
  const boxes: Box[] = groups.map((one) => ({ x: 0, y: 0, width: widthOf(one), height: SIZE.height }))
  const regions = placeRegions(groups, edges, boxes)
  const { left, top, right, bottom } = boundsOf(
    regions.length > 0 ? regions.map(({ box: region }) => region) : [{ x: 0, y: 0, width: 1, height: 1 }],
  )
  for (const side of ['left', 'right'] as const) {
    const rim = outsideOn(side, groups, edges)
    const byHeight = rim.sort((a, b) => heightOf(a, edges, boxes) - heightOf(b, edges, boxes) || a - b)
    const step = Math.max(SIZE.height + 14, (bottom - top) / Math.max(1, byHeight.length))
    const first = (top + bottom) / 2 - (step * (byHeight.length - 1)) / 2
    for (const [index, at] of byHeight.entries()) {
      const offset = PAD.rim + SIZE.outside / 2
      boxes[at] = { ...boxes[at]!, x: side === 'left' ? left - offset : right + offset, y: first + step * index }
    }
  }
  return { boxes, regions }
}

/** Places a region for each env, with the boxes of its groups inside. */
function placeRegions(groups: readonly MapGroup[], edges: readonly MapEdge[], boxes: Box[]) {
  const envs = new Map<string, number[]>()
  for (const [at, { kind, env }] of groups.entries())
    if (kind === 'group') envs.set(env, [...(envs.get(env) ?? []), at])
  const parts = [...envs].map(([env, members]) => {
    const within = new Map(members.map((at, index) => [at, index]))
    const links = edges.flatMap(({ from, to }) => {
      const [a, b] = [within.get(from), within.get(to)]
      return a === undefined || b === undefined ? [] : [{ from: a, to: b }]
    })
    const placed = placeBoxes(
      members.map((at) => boxes[at]!),
      links,
    )
    return { env, members, placed, bounds: boundsOf(placed) }
  })
  const names = parts.map(({ env, members }) => {
    const count = members.reduce((sum, at) => sum + (groups[at]!.folded?.length ?? 1), 0)
    return `${env === '' ? 'no env' : env} · ${countOf(count, 'group')}`
  })
  const sizes = parts.map(({ bounds }, part) => ({
    width: Math.max(bounds.right - bounds.left, Math.min(260, measureText(names[part]!, 13))) + 2 * PAD.env,
    height: bounds.bottom - bounds.top + PAD.env + PAD.head,
  }))
  const corners = packInRows(sizes, { gap: PAD.between, ratio: 1.5 })
  return parts.map(({ members, placed, bounds }, part) => {
    const [corner, { width, height }] = [corners[part]!, sizes[part]!]
    const spare = (width - 2 * PAD.env - (bounds.right - bounds.left)) / 2
    for (const [index, at] of members.entries())
      boxes[at] = {
        ...placed[index]!,
        x: placed[index]!.x - bounds.left + corner.x + PAD.env + spare,
        y: placed[index]!.y - bounds.top + corner.y + PAD.head,
      }
    return { name: names[part]!, box: { x: corner.x + width / 2, y: corner.y + height / 2, width, height } }
  })
}

/**
 * Returns the nodes outside the environments that are drawn on one side: sources on the left, destinations on the
 * right. A node that is both is drawn on the left if it has more outbound than inbound connections.
 */
function outsideOn(side: Side, groups: readonly MapGroup[], edges: readonly MapEdge[]): number[] {
  const balance = new Map<number, number>()
  for (const { from, to, connections } of edges) {
    balance.set(from, (balance.get(from) ?? 0) + connections)
    balance.set(to, (balance.get(to) ?? 0) - connections)
  }
  return groups.flatMap(({ kind }, at) =>
    kind !== 'group' && (side === 'left') === (balance.get(at) ?? 0) > 0 ? [at] : [],
  )
}

/** Returns the average vertical position of the groups with which a node outside the environments communicates. */
function heightOf(at: number, edges: readonly MapEdge[], boxes: readonly Box[]): number {
  const others = edges.flatMap(({ from, to }) => (from === at ? [boxes[to]!.y] : to === at ? [boxes[from]!.y] : []))
  return others.reduce((sum, y) => sum + y, 0) / Math.max(1, others.length)
}

const cornerOf = ({ x, y, width, height }: Box) => ({ x: x - width / 2, y: y - height / 2, width, height })

function drawName(region: Box & { name: string }): Markup {
  const { x, y, width } = cornerOf(region)
  const shown = Math.min(width - 2 * PAD.env, measureText(region.name, 12) * BOLD)
  return fragment([
    box({ x: x + PAD.env - 8, y: y + 6, width: shown + 16, height: 19 }, 'plate', 9),
    label(region.name, { x: x + PAD.env, y: y + 15, width: width - 2 * PAD.env, look: 'soft strong' }),
  ])
}

/**
 * The order in which lines are drawn, by policy decision. Allowed traffic comes first, so that all other lines lie on
 * top of it.
 */
const LAYERS: Readonly<Record<Decision, number>> = { allowed: 0, unknown: 1, potentially_blocked: 2, blocked: 3 }
const BOTTOM_UP = [...DECISIONS].sort((one, other) => LAYERS[one] - LAYERS[other])

/**
 * Draws a line between two boxes. If one of the boxes is outside the envs, the line starts or ends at the side of that
 * box which faces the groups, so that the line does not cross neighbouring boxes.
 */
function curveOf(
  groups: readonly MapGroup[],
  boxes: readonly Box[],
  { from, to, lane }: { from: number; to: number; lane: number },
): string {
  const isOutside = (at: number) => groups[at]!.kind !== 'group'
  const [one, other] = [boxes[from]!, boxes[to]!]
  if (!isOutside(from) && !isOutside(to)) return curveBetween(one, other, lane)
  const facing = (own: Box, opposite: Box) => Math.sign(opposite.x - own.x) || 1
  const at = (own: Box, opposite: Box, shift: number) => ({
    x: own.x + (facing(own, opposite) * own.width) / 2,
    y: own.y + shift,
  })
  return curveAcross(at(one, other, 3 * lane), at(other, one, 3 * lane))
}

function drawEdges(
  { groups, edges }: Pick<MapFacts, 'groups' | 'edges'>,
  boxes: readonly Box[],
  decision: Decision,
  prefix: string,
): Markup {
  const thicknessOf = thicknessScale(edges.reduce((most, { connections }) => Math.max(most, connections), 0))
  const lanes = new Map<string, number>()
  const paths = edges.flatMap(({ from, to, decision: own, connections }) => {
    const key = `${from} ${to}`
    const lane = lanes.get(key) ?? 0
    lanes.set(key, lane + 1)
    if (own !== decision) return []
    return element('path', {
      d: curveOf(groups, boxes, { from, to, lane }),
      'stroke-width': thicknessOf(connections),
      'data-f': from,
      'data-t': to,
    })
  })
  if (paths.length === 0) return fragment([])
  return group({ class: `edge ${classOf(decision)}`, 'marker-end': headOf(prefix, decision) }, ...paths)
}

const LOOKS = { group: 'box', external: 'outside', unlabelled: 'outside nameless' } as const

function drawGroup(one: MapGroup, { x, y, width, height }: Box, at: number): Markup {
  const isOutside = one.kind !== 'group'
  const corner = { x: x - width / 2, y: y - height / 2 }
  const look = one.folded === undefined ? LOOKS[one.kind] : 'fold'
  const inner = width - 20
  return group(
    { class: 'node', 'data-n': at, 'data-name': one.folded === undefined ? one.name : undefined },
    element('title', {}, titleOf(one)),
    box({ ...corner, width, height }, look, isOutside ? height / 2 : 6),
    label(nameOf(one), { x, y: y - 7, width: inner, look: 'strong middle' }),
    label(subtitleOf(one), { x, y: y + 9, width: inner, size: 10.5, look: 'soft small middle' }),
  )
}

/** Maximum number of group names that the tooltip of a folded node lists. */
const MOST_LISTED = 30

function titleOf({ name, folded, connections }: MapGroup): string {
  const total = `${countOf(connections, 'connection')} in and out`
  if (folded === undefined) return `${quoted(name)}: ${total}`
  const listed = folded.slice(0, MOST_LISTED).join('\n')
  return `${folded.length} folded, ${total}:\n${listed}${folded.length > MOST_LISTED ? '\n…' : ''}`
}
