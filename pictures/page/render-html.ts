import { element, fragment, type Child, type Markup } from '../markup.js'
import { countOf, wholeNumber, type Picture, type Table, type View } from '../picture.js'
import { classOf, label } from '../drawings/shapes.js'
import { renderInline } from './render-svg.js'
import { PAGE_STYLE } from './page-style.js'

/** Maximum size of an HTML file in bytes. */
const MOST_BYTES = 1024 * 1024
/**
 * The number of bytes reserved for tables, enough for about 2,000 rows. Drawings must not use this space, because
 * tables are all that screen readers can read.
 */
const TABLE_BYTES = 256 * 1024

/** The parts of a page that come from the program that writes the file, and not from the picture. */
export interface HtmlParts {
  /** The script inside the page that makes the picture interactive. */
  script: string
  /** Returns the hash of a string as `sha256-…`, the form that a content security policy requires. */
  hash: (text: string) => string
  /** The author and date, shown at the bottom of the page. */
  foot: string
}

/**
 * Renders a picture as a self-contained page. A content security policy prevents the page from loading or sending
 * anything. The page has at most 1 MiB, unless its sentences, which are never cut, need more. A quarter of this size is
 * reserved for tables. A view that does not fit into the space that earlier views leave is left out. Tables are cut to
 * the remaining space. The page says what is missing.
 */
export function renderHtmlFile(picture: Picture, { script, hash, foot }: HtmlParts): string {
  const policy = [
    "default-src 'none'",
    `style-src '${hash(PAGE_STYLE)}'`,
    `script-src '${hash(script)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  const head = [
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    element('title', {}, picture.title).text,
    `<style>${PAGE_STYLE}</style></head><body><main id="picture">`,
  ].join('')
  const rest = bytesOf(head) + bytesOf(renderFigure({ ...picture, views: [NOT_DRAWN] }).text)
  const figure = renderFigure(fitViews(picture, MOST_BYTES - TABLE_BYTES - rest)).text
  const end = `${element('p', { class: 'hint' }, foot).text}</main><script>${script}</script></body></html>\n`
  const left = MOST_BYTES - bytesOf(head) - bytesOf(figure) - bytesOf(end)
  return `${head}${figure}${renderTables(picture.tables, left).text}${end}`
}

const NOT_DRAWN: View = {
  name: 'Left out',
  drawing: {
    width: 400,
    height: 60,
    content: label('Too large to be drawn in a page.', { x: 20, y: 30, width: 380, look: 'soft' }),
  },
}

/**
 * Returns the picture with only those views that fit into the given size, and with a sentence about each view that was
 * left out.
 */
function fitViews(picture: Picture, bytes: number): Picture {
  let left = bytes
  const fits = ({ drawing }: View) => {
    const size = bytesOf(drawing.content.text)
    if (size > left) return false
    left -= size
    return true
  }
  const [first = NOT_DRAWN, ...others] = picture.views.filter(fits)
  const omitted = picture.views.filter((view) => view !== first && !others.includes(view))
  const notes = omitted.map(({ name }) => `The drawing “${name}” is left out: it is too large for a page.`)
  return { ...picture, notes: [...picture.notes, ...notes], views: [first, ...others] }
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length

/** Renders a picture's heading, sentences, controls, drawing and legend. */
export function renderFigure(picture: Picture): Markup {
  const { title, notes, warnings, views, legend } = picture
  return fragment([
    element('h1', { id: 'title' }, title),
    ...(warnings.length > 0 ? [list('warnings', warnings)] : []),
    list('notes', [...notes, ...views.flatMap(({ note }) => note ?? [])]),
    renderTools(picture),
    element(
      'div',
      {
        class: 'stage',
        tabindex: 0,
        role: 'group',
        'aria-label': `${title}, drawn. Tables of the facts are below.`,
      },
      ...views.map(({ drawing }, at) => renderInline(drawing, 'title', at > 0)),
    ),
    element(
      'p',
      { class: 'hint tools', hidden: true },
      'Drag to move, Ctrl or ⌘ with the wheel to zoom; with the keyboard: arrows, + and −, 0 for the whole. A click on a group shows what it talks to, Escape everything again.',
    ),
    ...(legend.length === 0
      ? []
      : [element('ul', { class: 'legend' }, ...legend.map(({ sample, text }) => element('li', {}, sample, text)))]),
  ])
}

const list = (name: string, sentences: readonly string[]): Markup =>
  element('ul', { class: name }, ...sentences.map((sentence) => element('li', {}, bdi(sentence))))

const bdi = (text: string): Markup => element('bdi', {}, text)

/** Renders the controls of a picture. They stay hidden unless the page's script runs. */
function renderTools({ views, legend }: Picture): Markup {
  const decided = legend.flatMap(({ decision, text }) => (decision === undefined ? [] : [{ decision, text }]))
  const tools: Markup[] = [
    element(
      'label',
      {},
      'Find ',
      element('input', { type: 'search', id: 'find', autocomplete: 'off', spellcheck: 'false' }),
    ),
    element('span', { id: 'found', role: 'status' }),
    element(
      'span',
      {},
      ...[
        ['out', '−', 'Zoom out'],
        ['in', '+', 'Zoom in'],
        ['fit', 'Fit', 'Fit the whole picture'],
      ].flatMap(([id, text, name]) => [
        element('button', { type: 'button', id: id!, 'aria-label': name! }, text!),
        ' ',
      ]),
    ),
    ...(decided.length < 2
      ? []
      : [
          fieldset(
            'Show',
            decided.map(({ decision, text }) => [
              element('input', { type: 'checkbox', checked: true, value: classOf(decision) }),
              text,
            ]),
          ),
        ]),
    ...(views.length < 2
      ? []
      : [
          fieldset(
            'View',
            views.map(({ name }, at) => [
              element('input', { type: 'radio', name: 'view', value: at, checked: at === 0 }),
              name,
            ]),
          ),
        ]),
  ]
  return element('div', { class: 'tools', hidden: true }, ...tools)
}

const fieldset = (name: string, choices: readonly Child[][]): Markup =>
  element('fieldset', {}, element('legend', {}, name), ...choices.map((choice) => element('label', {}, ...choice)))

/** The number of rows from which on a table stays collapsed until the reader opens it. */
const MOST_OPEN = 60
/** The number of bytes reserved for the markup of a table apart from its rows. */
const AROUND_TABLE = 600

/** Renders the tables of a picture within a size limit in bytes. If rows are left out, a sentence says how many. */
export function renderTables(tables: readonly Table[], bytes: number): Markup {
  // Space is reserved for the markup of all tables first, because a table is rendered even if there is no space for its
  // rows.
  let left = bytes - (tables.length + 1) * AROUND_TABLE
  const parts = tables.map((table) => {
    const rows: Markup[] = []
    for (const row of table.rows) {
      const markup = renderRow(table, row)
      left -= bytesOf(markup.text)
      if (left < 0) break
      rows.push(markup)
    }
    return { table, rows }
  })
  const total = tables.reduce((sum, { rows }) => sum + rows.length, 0)
  const shown = parts.reduce((sum, { rows }) => sum + rows.length, 0)
  const words =
    shown === total
      ? 'What the drawing leaves out is in these tables.'
      : `These tables have ${wholeNumber(shown)} of ${countOf(total, 'row')}: the others are left out for size.`
  return fragment([element('p', {}, words), ...parts.map(({ table, rows }) => renderTable(table, rows))])
}

function renderTable(table: Table, rows: readonly Markup[]): Markup {
  const cut = table.rows.length - rows.length
  const caption = `${table.caption}: ${countOf(table.rows.length, 'row')}${cut > 0 ? `, of which the last ${wholeNumber(cut)} are left out here for size` : ''}`
  const heads = table.columns.map(({ name, isNumber }) => element('th', { scope: 'col', class: isNumber && 'n' }, name))
  const body = element(
    'table',
    {},
    element('caption', {}, caption),
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody', {}, ...rows),
  )
  return element(
    'details',
    { open: table.rows.length <= MOST_OPEN },
    element('summary', {}, `Table: ${table.caption}`),
    element('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': table.caption }, body),
  )
}

function renderRow({ columns }: Table, { cells, decision }: Table['rows'][number]): Markup {
  const inside = cells.map((cell, at) =>
    columns[at]?.isNumber === true
      ? element('td', { class: 'n' }, typeof cell === 'number' ? wholeNumber(cell) : cell)
      : element('td', { dir: 'auto' }, String(cell)),
  )
  return element('tr', { class: decision && classOf(decision) }, ...inside)
}
