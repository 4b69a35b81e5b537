import { html } from 'ghtml'
import { showStored } from './show-stored.js'

/**
 * Matches the quotations that `quote` puts into a sentence. If the sentence was cut within a quotation, the closing
 * quotation mark is missing.
 */
const QUOTATION = /"((?:[^"\\]|\\.)*)(?:"|\\?$)/gu

/**
 * Renders a sentence that this server wrote. Each quotation in it, such as the name of an object, becomes an element of
 * its own, so that the reader can distinguish this server's words from quoted words (D236).
 */
export function renderSentence(sentence: string, most: number): string {
  const shown = showStored(sentence, most)
  let from = 0
  let rendered = ''
  for (const { 0: whole, 1: inside = '', index } of shown.matchAll(QUOTATION)) {
    rendered += html`<bdi>${shown.slice(from, index)}</bdi>!${renderQuotation(readQuotation(inside))}`
    from = index + whole.length
  }
  return rendered + html`<bdi>${shown.slice(from)}</bdi>`
}

/** The control characters for which JSON has escapes with a single letter, by letter. */
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/**
 * Decodes the text inside a quotation. `quote` escapes only quotation marks and backslashes, whereas the PCE client
 * quotes as JSON does, so any other escape is one of JSON's. Hidden characters become visible escapes.
 */
function readQuotation(inside: string): string {
  const read = inside.replace(/\\(?:u([0-9a-f]{4})|(.))/giu, (_escape, code: string | undefined, character: string) =>
    code === undefined ? (CONTROLS[character] ?? character) : String.fromCharCode(Number.parseInt(code, 16)),
  )
  return showStored(read)
}

/** Renders the sentence that says what the call does. It always begins with this server's own words. */
export const renderLead = (summary: string, most: number): string =>
  `${summary.startsWith('"') ? 'It is about ' : ''}${renderSentence(summary, most)}`

/** Renders a name or another text that this server did not write as a separate element. */
export const renderQuotation = (text: string): string => html`<q><bdi>${text}</bdi></q>`
