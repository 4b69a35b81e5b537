import { element, fragment, type Markup } from '../markup.js'
import { box, label } from './shapes.js'

/** A card in a column: a name, a line of details below it, and a colour and sign for what the card represents. */
export interface Card {
  name: string
  detail: string
  /** The CSS class that gives the left edge and the sign of the card their colour. */
  look: string
  /** A character that has the same meaning as the colour of the card. */
  sign: string
  tooltip?: string
  isFold?: boolean
}

export const CARD = { width: 300, height: 42, gap: 8 }

/** Draws a card. `x`, `y` is its upper left corner. */
export function drawCard(
  { name, detail, look, sign, tooltip, isFold }: Card,
  x: number,
  y: number,
  width = CARD.width,
): Markup {
  return element(
    'g',
    { class: 'node', 'data-name': name },
    ...(tooltip === undefined ? [] : [element('title', {}, tooltip)]),
    box({ x, y, width, height: CARD.height }, isFold === true ? 'fold' : 'box'),
    box({ x, y, width: 6, height: CARD.height }, `bar ${look}`, 2),
    label(sign, { x: x + 22, y: y + CARD.height / 2, width: 20, size: 14, look: `own strong middle ${look}` }),
    label(name, { x: x + 40, y: y + 14, width: width - 52, look: 'strong' }),
    label(detail, { x: x + 40, y: y + 30, width: width - 52, size: 10.5, look: 'soft small' }),
  )
}

/**
 * Draws a heading and, below it, cards in a column that starts at `y`. Returns the vertical middle of each card, and
 * the lower end of the column.
 */
export function drawColumn(
  heading: string,
  cards: readonly Card[],
  { x, y, width = CARD.width }: { x: number; y: number; width?: number },
): { content: Markup; middles: number[]; bottom: number } {
  const top = y + 26
  const at = (index: number) => top + index * (CARD.height + CARD.gap)
  return {
    content: fragment([
      label(heading, { x, y: y + 10, width, look: 'soft strong' }),
      ...cards.map((card, index) => drawCard(card, x, at(index), width)),
    ]),
    middles: cards.map((_, index) => at(index) + CARD.height / 2),
    bottom: at(cards.length),
  }
}
