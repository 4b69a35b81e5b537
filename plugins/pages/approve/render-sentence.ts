import { html } from 'ghtml'
import { showStored } from './render-value.js'

/** What `quote` puts into a sentence; a sentence that is cut in the middle of a quotation has no end of it. */
const QUOTATION = /"((?:[^"\\]|\\.)*)(?:"|\\?$)/gu

/**
 * Renders a sentence of ours. What it quotes, such as the names of objects, becomes an element of its own, so that the
 * reader sees where our words end and those of others begin (D236).
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

/** Renders what a page says the call does. It always begins in our words. */
export const renderLead = (summary: string, most: number): string =>
  `${summary.startsWith('"') ? 'It is about ' : ''}${renderSentence(summary, most)}`

/** Renders a name or another text of others as an element of its own. */
export const renderQuotation = (text: string): string => html`<q><bdi>${text}</bdi></q>`
