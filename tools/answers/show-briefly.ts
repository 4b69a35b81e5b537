import { cleanText } from '../../domain/text/clean-text.js'
import { jsonBytes } from './split-format.js'

/** PCE text for a sentence or a short list: clean, and at most so many characters, none of them cut in half. */
export function clipText(text: string, most: number): string {
  const characters = [...cleanText(text)]
  return characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`
}

/** As many leading rows as fit into so many bytes of JSON text; the first one always does. */
export function rowsWithin<T>(rows: readonly T[], bytes: number): T[] {
  let left = bytes
  const end = rows.findIndex((row) => (left -= jsonBytes(row) + 1) < 0)
  return end === -1 ? [...rows] : rows.slice(0, Math.max(1, end))
}
