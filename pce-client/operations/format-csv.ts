import { PceError } from '../errors.js'

/**
 * Objects as CSV (RFC 4180): a header line of every field that any of them has, in the order they first appear, then a line for
 * each object. A field that an object lacks, or that is null, is empty.
 *
 * Written here because it is these few lines: nothing that this package depends on writes CSV.
 *
 * @throws {PceError} `invalid_argument` for a value that a cell cannot hold, and for objects without any field.
 */
export function formatCsv(rows: readonly object[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  if (columns.length === 0)
    throw new PceError('invalid_argument', 'nothing to write as CSV: the objects have no fields')
  const lines = rows.map((row) => columns.map((column) => textOf(column, (row as Record<string, unknown>)[column])))
  return [columns, ...lines].map((cells) => `${lineOf(cells)}\r\n`).join('')
}

function textOf(column: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new PceError(
    'invalid_argument',
    `${JSON.stringify(column)} is no text, number or switch, which CSV is limited to`,
  )
}

function lineOf(cells: readonly string[]): string {
  const line = cells.map((text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')
  // An empty line would be taken for no line.
  return line === '' ? '""' : line
}
