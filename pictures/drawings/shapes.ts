import { element, fragment, type Child, type Markup } from '../markup.js'
import { BOLD, clipToWidth } from '../measure-text.js'
import { DECISION_WORDS, DECISIONS, type Decision, type LegendEntry } from '../picture.js'

export const classOf = (decision: Decision): string => decision.replace('_', '-')

/**
 * Draws a line of text whose vertical middle is at `y`. If the text is too wide and must be clipped, a tooltip shows it
 * in full.
 */
export function label(
  text: string,
  { x, y, width, size = 12, look = '' }: { x: number; y: number; width: number; size?: number; look?: string },
): Markup {
  const shown = clipToWidth(text, look.includes('strong') ? width / BOLD : width, size)
  const tooltip: Child[] = shown === text ? [] : [element('title', {}, text)]
  return element(
    'text',
    { x: Math.round(x), y: Math.round(y + size * 0.35), class: look || undefined },
    ...tooltip,
    shown,
  )
}

export const box = (
  { x, y, width, height }: { x: number; y: number; width: number; height: number },
  look: string,
  radius = 6,
): Markup =>
  element('rect', {
    x: Math.round(x),
    y: Math.round(y),
    width: Math.round(width),
    height: Math.round(height),
    rx: radius,
    class: look,
  })

/**
 * Defines one arrow head for each decision. A line gets the arrow head of its decision if its `marker-end` is
 * `headOf(prefix, decision)`. Prefixes must be unique within a page.
 */
export function arrowHeads(prefix: string): Markup {
  const heads = DECISIONS.map((decision) =>
    element(
      'marker',
      {
        id: `${prefix}-${classOf(decision)}`,
        viewBox: '0 0 8 8',
        refX: 7.5,
        refY: 4,
        markerWidth: 9,
        markerHeight: 9,
        markerUnits: 'userSpaceOnUse',
        orient: 'auto',
      },
      element('path', { class: `head ${classOf(decision)}`, d: 'M0 0L8 4L0 8z' }),
    ),
  )
  return element('defs', {}, ...heads)
}

export const headOf = (prefix: string, decision: Decision): string => `url(#${prefix}-${classOf(decision)})`

/** Draws a sample of a line, 34 by 12 pixels, for a legend. */
const lineSample = (decision: Decision): Markup =>
  sample(element('path', { class: `edge ${classOf(decision)}`, 'stroke-width': 2.5, d: 'M1 6H33' }))

/** Creates a small drawing, such as a sample of a line, for a legend. */
export const sample = (...content: readonly Markup[]): Markup =>
  element(
    'svg',
    { class: 'pic sample', width: 34, height: 12, viewBox: '0 0 34 12', 'aria-hidden': 'true' },
    ...content,
  )

/** Creates the legend entries for the decisions that occur in a picture. */
export function legendOfDecisions(occurring: ReadonlySet<Decision>): LegendEntry[] {
  return DECISIONS.filter((decision) => occurring.has(decision)).map((decision) => ({
    sample: lineSample(decision),
    text: DECISION_WORDS[decision],
    decision,
  }))
}

export const group = (attributes: Parameters<typeof element>[1], ...children: readonly Markup[]): Markup =>
  element('g', attributes, ...children)

export { element, fragment }
