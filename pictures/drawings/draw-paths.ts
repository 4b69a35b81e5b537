import { showKey, type PathEdge, type PathNode, type PathsFacts } from '../facts/paths-facts.js'
import { curveAcross, curveBetween, thicknessScale } from '../layout/draw-lines.js'
import { boundsOf, placeBoxes, type Box } from '../layout/place-boxes.js'
import { fragment, type Markup } from '../markup.js'
import { BOLD, measureText } from '../measure-text.js'
import { countOf, DECISION_WORDS, quoted, type Drawing, type Picture, type Table } from '../picture.js'
import { arrowHeads, box, classOf, element, group, headOf, label, legendOfDecisions, sample } from './shapes.js'

const NODE = { height: 40, least: 110, most: 210 }
const PAD = 24
const COLUMN = 190
const ROW = 66

/**
 * Draws where an intruder could go: applications in columns by the number of hops, the reason why each connection is
 * open, and the connections that use ports of remote administration.
 */
export function drawPaths(facts: PathsFacts): Picture {
  const { title, notes, warnings, nodes, edges, paths } = facts
  return {
    kind: 'paths',
    title,
    notes,
    warnings,
    views: [{ name: 'Paths', drawing: drawNodes(facts) }],
    legend: [
      ...legendOfDecisions(new Set(edges.map(({ decision }) => decision))),
      ...(edges.some(({ riskyPorts }) => riskyPorts.length > 0)
        ? [
            {
              sample: sample(element('text', { class: 'own strong cut', x: 11, y: 10 }, '⚠')),
              text: 'remote administration or file sharing',
            },
          ]
        : []),
      ...(nodes.some(({ isBridge }) => isBridge)
        ? [
            {
              sample: sample(
                box({ x: 1, y: 1, width: 32, height: 10 }, 'box', 3),
                box({ x: 3.5, y: 3, width: 27, height: 6 }, 'ring', 2),
              ),
              text: 'bridge: links parts that would otherwise be separate',
            },
          ]
        : []),
    ],
    tables: [
      ...(paths.length === 0 ? [] : [tableOfPaths(paths)]),
      tableOfEdges(nodes, edges),
      ...(nodes.some(({ isBridge }) => isBridge) ? [tableOfBridges(nodes)] : []),
    ],
  }
}

const tableOfPaths = (paths: PathsFacts['paths']): Table => ({
  caption: 'Shortest paths',
  columns: [{ name: 'Hops', isNumber: true }, { name: 'Path' }],
  rows: paths.map((path) => ({ cells: [path.length - 1, path.map(showKey).join(' → ')] })),
})

const tableOfEdges = (nodes: readonly PathNode[], edges: readonly PathEdge[]): Table => ({
  caption: 'Connections',
  columns: [
    { name: 'From' },
    { name: 'To' },
    { name: 'Connections', isNumber: true },
    { name: 'Decisions' },
    { name: 'Ports' },
    { name: 'Risky ports' },
  ],
  rows: edges.map((edge) => ({
    cells: [
      showKey(nodes[edge.from]!.key),
      showKey(nodes[edge.to]!.key),
      edge.connections,
      Object.entries(edge.decisions)
        .map(([decision, count]) => `${decision.replaceAll('_', ' ')} ${count.toLocaleString('en')}`)
        .join(', '),
      portsOf(edge),
      edge.riskyPorts.join(', '),
    ],
    decision: edge.decision,
  })),
})

const tableOfBridges = (nodes: readonly PathNode[]): Table => ({
  caption: 'Bridges in this picture',
  columns: [{ name: 'Application' }],
  rows: nodes.filter(({ isBridge }) => isBridge).map(({ key }) => ({ cells: [showKey(key)] })),
})

const portsOf = ({ ports, portsTotal }: PathEdge): string =>
  `${ports.join(', ')}${portsTotal > ports.length ? ` and ${portsTotal - ports.length} more` : ''}`

function drawNodes({ nodes, edges }: PathsFacts): Drawing {
  const isLayered = nodes.some(({ hop }) => hop !== null)
  const boxes = isLayered ? placeInColumns(nodes, edges) : placeBoxes(nodes.map(sizeOf), edges)
  if (boxes.length === 0) {
    const words = 'Nothing to draw: no connection was found.'
    return { width: 400, height: 60, content: label(words, { x: 20, y: 30, width: 380, look: 'soft' }) }
  }
  const { left, top, right, bottom } = boundsOf(boxes)
  const moved = boxes.map((one) => ({ ...one, x: one.x - left + PAD, y: one.y - top + PAD + (isLayered ? 26 : 0) }))
  const width = Math.ceil(right - left + 2 * PAD)
  return {
    width,
    height: Math.ceil(bottom - top + 2 * PAD + (isLayered ? 26 : 0)),
    content: fragment([
      arrowHeads('p0'),
      ...(isLayered ? drawHeadings(nodes, moved) : []),
      ...drawEdges(edges, moved, isLayered),
      ...nodes.map((node, at) => drawNode(node, moved[at]!, at)),
    ]),
  }
}

const sizeOf = ({ key }: PathNode) => ({
  width: Math.min(NODE.most, Math.max(NODE.least, measureText(showKey(key), 12) * BOLD + 26)),
  height: NODE.height,
})

/**
 * Places one column per number of hops. Within a column, nodes are sorted by the average position of their
 * predecessors, which keeps the number of crossing lines low.
 */
function placeInColumns(nodes: readonly PathNode[], edges: readonly PathEdge[]): Box[] {
  const isBackwards = nodes.some(({ isTarget, hop }) => isTarget && hop === 0)
  const columns: number[][] = []
  for (const [at, { hop }] of nodes.entries()) (columns[hop ?? 0] ??= []).push(at)
  const filled = columns.filter((column) => column !== undefined)
  const rows = new Float64Array(nodes.length)
  for (const [column, members] of filled.entries()) {
    const before = new Set(filled[column - 1])
    const middle = (at: number) => {
      const others = edges.flatMap(({ from, to }) =>
        to === at && before.has(from) ? [rows[from]!] : from === at && before.has(to) ? [rows[to]!] : [],
      )
      return others.length === 0 ? 0 : others.reduce((sum, row) => sum + row, 0) / others.length
    }
    const order = members.map((at) => ({ at, wish: middle(at) })).sort((a, b) => a.wish - b.wish || a.at - b.at)
    for (const [row, { at }] of order.entries()) rows[at] = row - (order.length - 1) / 2
  }
  const columnOf = new Map(filled.flatMap((members, column) => members.map((at) => [at, column] as const)))
  const gap = NODE.most + COLUMN - 100
  return nodes.map((node, at) => {
    const column = columnOf.get(at) ?? 0
    return { x: (isBackwards ? filled.length - 1 - column : column) * gap, y: rows[at]! * ROW, ...sizeOf(node) }
  })
}

function drawHeadings(nodes: readonly PathNode[], boxes: readonly Box[]): Markup[] {
  const isTo = nodes.some(({ isTarget, hop }) => isTarget && hop === 0)
  const seen = new Map<number, number>()
  for (const [at, { hop }] of nodes.entries()) if (hop !== null) seen.set(hop, boxes[at]!.x)
  const words = (hop: number) =>
    hop === 0 ? (isTo ? 'target' : 'start') : isTo ? `${countOf(hop, 'hop')} away` : countOf(hop, 'hop')
  return [...seen].map(([hop, x]) => label(words(hop), { x, y: PAD - 4, width: NODE.most, look: 'soft strong middle' }))
}

function drawEdges(edges: readonly PathEdge[], boxes: readonly Box[], isLayered: boolean): Markup[] {
  const thicknessOf = thicknessScale(Math.max(0, ...edges.map(({ connections }) => connections)), 4)
  return edges.map((edge) => {
    const [from, to] = [boxes[edge.from]!, boxes[edge.to]!]
    const isForward = isLayered && to.x - to.width / 2 > from.x + from.width / 2
    const d = isForward
      ? curveAcross({ x: from.x + from.width / 2, y: from.y }, { x: to.x - to.width / 2, y: to.y })
      : curveBetween(from, to)
    const spot = isForward ? onCurve(edge, { from, to }, edges) : { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
    const ports = edge.riskyPorts.length > 0 ? `⚠ ${edge.riskyPorts.join(', ')}` : (edge.ports[0] ?? '')
    return fragment([
      group(
        { class: `edge ${classOf(edge.decision)}`, 'marker-end': headOf('p0', edge.decision) },
        element(
          'path',
          { d, 'stroke-width': Math.max(1, thicknessOf(edge.connections)), 'data-f': edge.from, 'data-t': edge.to },
          element(
            'title',
            {},
            `${countOf(edge.connections, 'connection')}, ${DECISION_WORDS[edge.decision]}: ${portsOf(edge)}`,
          ),
        ),
      ),
      label(ports, {
        x: spot.x,
        y: spot.y - 7,
        width: 120,
        size: 10.5,
        look: `small middle halo ${edge.riskyPorts.length > 0 ? 'own strong cut' : 'soft'}`,
      }),
    ])
  })
}

/**
 * Returns the position of a line's label. It is near the end of the line where fewer lines meet, so that the labels of
 * different lines do not collide.
 */
function onCurve(
  edge: PathEdge,
  { from, to }: { from: Box; to: Box },
  edges: readonly PathEdge[],
): { x: number; y: number } {
  const leaving = edges.filter((one) => one.from === edge.from).length
  const arriving = edges.filter((one) => one.to === edge.to).length
  const t = leaving > arriving ? 0.8 : 0.2
  const [start, end] = [from.x + from.width / 2, to.x - to.width / 2]
  const middle = (start + end) / 2
  return {
    x: (1 - t) ** 3 * start + 3 * t * (1 - t) * middle + t ** 3 * end,
    y: from.y + (to.y - from.y) * (3 * t ** 2 - 2 * t ** 3),
  }
}

function drawNode(node: PathNode, { x, y, width, height }: Box, at: number): Markup {
  const corner = { x: x - width / 2, y: y - height / 2, width, height }
  const part = node.isStart ? 'start' : node.isTarget ? 'target' : node.isBridge ? 'bridge' : ''
  const isEnd = node.isStart || node.isTarget
  return group(
    { class: 'node', 'data-n': at, 'data-name': showKey(node.key) },
    element('title', {}, part === '' ? showKey(node.key) : `${quoted(showKey(node.key))}: ${part}`),
    box(corner, isEnd ? 'box marked' : 'box'),
    ...(node.isBridge
      ? [box({ x: corner.x + 3, y: corner.y + 3, width: width - 6, height: height - 6 }, 'ring', 4)]
      : []),
    label(showKey(node.key), { x, y: part === '' ? y : y - 7, width: width - 16, look: 'strong middle' }),
    ...(part === ''
      ? []
      : [
          label(node.isBridge && isEnd ? `${part}, bridge` : part, {
            x,
            y: y + 10,
            width: width - 16,
            size: 10.5,
            look: 'soft small middle',
          }),
        ]),
  )
}
