import {
  FATE_WORDS,
  type Fate,
  type Ringfence,
  type RingfenceFacts,
  type RingfenceSource,
} from '../facts/ringfence-facts.js'
import { curveAcross } from '../layout/draw-lines.js'
import { fragment, type Markup } from '../markup.js'
import { quoted, type Decision, type Drawing, type LegendEntry, type Picture, type Table } from '../picture.js'
import { CARD, drawColumn, type Card } from './columns.js'
import { arrowHeads, box, classOf, element, group, headOf, label, sample } from './shapes.js'

const PAD = 16
const COLUMN = { inside: 250, between: 120 }
/**
 * Maximum number of cards for sources with the same fate (for example, to be cut off). If there are more such sources,
 * the last ones share one card.
 */
const MOST_CARDS = 14
const MOST_SERVICES = 4
/** Maximum number of applications that are drawn. Further applications are only counted. */
const MOST_RINGFENCES = 6

const LOOKS: Readonly<Record<Fate, { sign: string; decision: Decision }>> = {
  cut: { sign: '✕', decision: 'blocked' },
  'perhaps-cut': { sign: '?', decision: 'potentially_blocked' },
  'let-in': { sign: '+', decision: 'allowed' },
  allowed: { sign: '✓', decision: 'allowed' },
}
const FATES = Object.keys(LOOKS) as Fate[]

/**
 * Draws the sources that a ringfence lets into an application and the sources that it would cut off, each with the
 * services that it reaches.
 */
export function drawRingfence(facts: RingfenceFacts): Picture {
  const { ringfences, notes, warnings } = facts
  const [first] = ringfences
  const drawn = ringfences.slice(0, MOST_RINGFENCES)
  const fates = new Set(ringfences.flatMap(({ sources }) => sources.map(({ fate }) => fate)))
  return {
    kind: 'ringfence',
    title:
      ringfences.length === 1 && first !== undefined
        ? `Ringfence of ${quoted(first.name)}`
        : `Ringfences of ${ringfences.length} applications`,
    notes: [
      ...notes,
      ...(drawn.length < ringfences.length ? [`The first ${drawn.length} of ${ringfences.length} are drawn.`] : []),
    ],
    warnings,
    views: [{ name: 'Ringfence', drawing: stack(drawn.map((one, at) => drawOne(one, `r${at}`))) }],
    legend: FATES.filter((fate) => fates.has(fate)).map(legendOf),
    tables: [
      tableOf(ringfences),
      ...(ringfences.some(({ destinations }) => destinations.length > 0) ? [destinationsOf(ringfences)] : []),
    ],
  }
}

const legendOf = (fate: Fate): LegendEntry => ({
  sample: sample(
    element('path', { class: `edge ${classOf(LOOKS[fate].decision)}`, 'stroke-width': 2.5, d: 'M1 6H18' }),
    element('text', { class: `own strong ${fate}`, x: 22, y: 10 }, LOOKS[fate].sign),
  ),
  text: FATE_WORDS[fate],
})

function tableOf(ringfences: readonly Ringfence[]): Table {
  return {
    caption: 'Who reaches it, and what becomes of them',
    columns: ['Application', 'Source', 'Once enforced', 'Services', 'Seen'].map((name) => ({ name })),
    rows: ringfences.flatMap(({ name, sources }) =>
      sources.map((one) => ({ cells: [name, one.name, FATE_WORDS[one.fate], one.services.join(', '), one.detail] })),
    ),
  }
}

const destinationsOf = (ringfences: readonly Ringfence[]): Table => ({
  caption: 'Where it goes itself (no rules are written for that)',
  columns: ['Application', 'Destination', 'Services', 'Seen'].map((name) => ({ name })),
  rows: ringfences.flatMap(({ name, destinations }) =>
    destinations.map((one) => ({ cells: [name, one.name, one.services.join(', '), one.detail] })),
  ),
})

function stack(drawings: readonly Drawing[]): Drawing {
  let y = 0
  const placed = drawings.map(({ content, height }) => {
    const moved = element('g', { transform: `translate(0 ${y})` }, content)
    y += height
    return moved
  })
  return {
    width: Math.max(1, ...drawings.map(({ width }) => width)),
    height: Math.max(1, y),
    content: fragment(placed),
  }
}

function drawOne(ringfence: Ringfence, prefix: string): Drawing {
  const sources = FATES.flatMap((fate) =>
    foldCards(
      ringfence.sources.filter((one) => one.fate === fate),
      fate,
    ),
  )
  const destinations = ringfence.destinations.slice(0, MOST_CARDS).map(({ name, services, detail }): Card => ({
    name,
    detail: `${servicesIn(services)} · ${detail}`,
    look: 'unknown',
    sign: '→',
    tooltip: `${quoted(name)}: ${services.join(', ')}`,
  }))
  const omitted = ringfence.destinations.length - destinations.length
  if (omitted > 0)
    destinations.push({ name: `${omitted} more`, detail: 'not drawn', look: 'unknown', sign: '→', isFold: true })
  const inside = { x: PAD + CARD.width + COLUMN.between, width: COLUMN.inside }
  const right = inside.x + inside.width + COLUMN.between
  const left = drawColumn(
    'Who reaches it today',
    sources.map(({ card }) => card),
    { x: PAD, y: PAD },
  )
  const out =
    destinations.length === 0 ? null : drawColumn('Where it goes (no rules)', destinations, { x: right, y: PAD })
  const bottom = Math.max(left.bottom, out?.bottom ?? 0, PAD + 26 + 120)
  const ring = { x: inside.x, y: PAD + 26, width: inside.width, height: bottom - PAD - 26 - CARD.gap }
  const middle = ring.y + ring.height / 2
  const landing = (index: number, count: number) => ring.y + (ring.height * (index + 1)) / (count + 1)
  return {
    width: (out === null ? inside.x + inside.width : right + CARD.width) + PAD,
    height: bottom + PAD,
    content: fragment([
      arrowHeads(prefix),
      ...left.middles.map((y, at) =>
        drawArrow(
          { from: { x: PAD + CARD.width, y }, to: { x: ring.x, y: landing(at, left.middles.length) } },
          sources[at]!,
          prefix,
        ),
      ),
      ...(out?.middles ?? []).map((y, at) =>
        group(
          { class: 'edge unknown', 'marker-end': headOf(prefix, 'unknown') },
          element('path', {
            'stroke-width': 1.5,
            d: curveAcross({ x: ring.x + ring.width, y: landing(at, out!.middles.length) }, { x: right, y }),
          }),
        ),
      ),
      drawRing(ringfence, ring, middle),
      left.content,
      ...(out === null ? [] : [out.content]),
    ]),
  }
}

function drawArrow(
  { from, to }: { from: { x: number; y: number }; to: { x: number; y: number } },
  { fate }: { fate: Fate },
  prefix: string,
): Markup {
  const { decision } = LOOKS[fate]
  const isCut = fate === 'cut'
  // The line of a source that would be cut off ends shortly before the application.
  const end = isCut ? { x: to.x - 26, y: to.y } : to
  const line = group(
    { class: `edge ${classOf(decision)}`, 'marker-end': isCut ? undefined : headOf(prefix, decision) },
    element('path', { 'stroke-width': fate === 'allowed' ? 1.5 : 2.5, d: curveAcross(from, end) }),
  )
  const cross = element(
    'text',
    { class: 'own strong middle cut', x: Math.round(end.x + 9), y: Math.round(end.y + 5), 'font-size': 15 },
    '✕',
  )
  return isCut ? fragment([line, cross]) : line
}

function drawRing(
  { name, ruleSet, inside, isSelective }: Ringfence,
  ring: { x: number; y: number; width: number; height: number },
  middle: number,
): Markup {
  const centre = ring.x + ring.width / 2
  const lines = [...inside, `rule set ${ruleSet}`, isSelective ? 'the rest is denied' : 'the rest: by full enforcement']
  const first = middle - (lines.length * 17) / 2
  return group(
    { class: 'node', 'data-name': name },
    box(ring, 'panel', 14),
    box({ x: ring.x + 5, y: ring.y + 5, width: ring.width - 10, height: ring.height - 10 }, 'ring allowed', 10),
    label(name, { x: centre, y: first - 16, width: ring.width - 30, size: 16, look: 'large middle' }),
    ...lines.map((line, at) =>
      label(line, { x: centre, y: first + 10 + at * 17, width: ring.width - 30, look: 'soft middle' }),
    ),
  )
}

const servicesIn = (services: readonly string[]): string => {
  const rest = services.length - MOST_SERVICES
  return `${services.slice(0, MOST_SERVICES).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}` || 'no service'
}

/**
 * Creates the cards for sources with the same fate (for example, to be cut off). If there are too many sources, the
 * first ones get cards of their own, and all others share one card.
 */
function foldCards(sources: readonly RingfenceSource[], fate: Fate): { card: Card; fate: Fate }[] {
  const { sign } = LOOKS[fate]
  const shown = sources.length > MOST_CARDS ? sources.slice(0, MOST_CARDS - 1) : sources
  const cards = shown.map(({ name, services, detail }) => ({
    card: {
      name,
      detail: `${servicesIn(services)} · ${detail}`,
      look: fate,
      sign,
      tooltip: `${quoted(name)}, ${FATE_WORDS[fate]}: ${services.join(', ')}; ${detail}`,
    },
    fate,
  }))
  const omitted = sources.length - shown.length
  if (omitted === 0) return cards
  return [
    ...cards,
    {
      card: { name: `${omitted} more`, detail: `${FATE_WORDS[fate]}: not drawn`, look: fate, sign, isFold: true },
      fate,
    },
  ]
}
