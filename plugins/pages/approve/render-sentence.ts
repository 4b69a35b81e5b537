import { html } from 'ghtml'
import { showStored } from './render-value.js'

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
    rendered += html`<bdi>${shown.slice(from, index)}</bdi>!${renderQuotation(inside.replace(/\\(.)/gu, '$1'))}`
    from = index + whole.length
  }
  return rendered + html`<bdi>${shown.slice(from)}</bdi>`
}

/** Renders the sentence that says what the call does. It always begins with this server's own words. */
export const renderLead = (summary: string, most: number): string =>
  `${summary.startsWith('"') ? 'It is about ' : ''}${renderSentence(summary, most)}`

/** Renders a name or another text that this server did not write as a separate element. */
export const renderQuotation = (text: string): string => html`<q><bdi>${text}</bdi></q>`
