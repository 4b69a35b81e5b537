import { element, fragment, type Markup } from '../markup.js'
import { measureText } from '../measure-text.js'
import type { Drawing, Picture } from '../picture.js'
import { PICTURE_STYLE } from '../style.js'
import { label } from '../drawings/shapes.js'

const XMLNS = 'http://www.w3.org/2000/svg'

/**
 * Renders a drawing for a page whose style contains `PICTURE_STYLE`. `named` is the id of the HTML element with the
 * drawing's name.
 */
export const renderInline = ({ width, height, content }: Drawing, named: string, hidden = false): Markup =>
  element(
    'svg',
    { class: 'pic', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-labelledby': named, hidden },
    content,
  )

const PAD = 20
const LINE = 17
/** Minimum width of the file's drawing in pixels, so that sentences have enough room above a narrow drawing. */
const LEAST_WIDTH = 720

/** Renders a picture as an SVG file: the first view with title, notes and legend, but without a script. */
export function renderSvgFile(picture: Picture): string {
  const { drawing } = picture.views[0]
  const width = Math.max(drawing.width, LEAST_WIDTH) + 2 * PAD
  const lines = [...picture.warnings, ...picture.notes].flatMap((note) => wrap(note, width - 2 * PAD))
  const top = PAD + 30 + lines.length * LINE + 6
  const legend = drawLegend(picture, width)
  const height = top + drawing.height + 14 + legend.height + PAD
  const described = [...picture.warnings, ...picture.notes].join(' ')
  const svg = element(
    'svg',
    {
      xmlns: XMLNS,
      class: 'pic',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-labelledby': 'pic-title pic-desc',
    },
    element('title', { id: 'pic-title' }, picture.title),
    element('desc', { id: 'pic-desc' }, described),
    element('style', {}, PICTURE_STYLE),
    element('rect', { class: 'ground', width, height }),
    label(picture.title, { x: PAD, y: PAD + 10, width: width - 2 * PAD, size: 16, look: 'large' }),
    ...lines.map((line, at) => label(line, { x: PAD, y: PAD + 36 + at * LINE, width, look: 'soft' })),
    element('g', { transform: `translate(${Math.round((width - drawing.width) / 2)} ${top})` }, drawing.content),
    element('g', { transform: `translate(${PAD} ${top + drawing.height + 14})` }, legend.content),
  )
  return `<?xml version="1.0" encoding="UTF-8"?>\n${svg.text}\n`
}

function drawLegend({ legend }: Picture, width: number): { content: Markup; height: number } {
  let [x, y] = [0, 0]
  const entries = legend.map(({ sample, text }) => {
    const needed = 34 + 8 + measureText(text, 12) + 24
    if (x > 0 && x + needed > width - 2 * PAD) [x, y] = [0, y + 20]
    const entry = element(
      'g',
      { transform: `translate(${Math.round(x)} ${y})` },
      sample,
      label(text, { x: 42, y: 6, width: needed, look: 'soft' }),
    )
    x += needed
    return entry
  })
  return { content: fragment(entries), height: legend.length === 0 ? 0 : y + 20 }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line !== '' && measureText(longer, 12) > width) {
      lines.push(line)
      line = word
    } else line = longer
  }
  return [...lines, line]
}
