import { html } from 'ghtml'
import { makeSafe, readEscapes } from '../../../domain/text/escape-text.js'
import { drawChange } from '../../../pictures/drawings/draw-change.js'
import { drawRingfence } from '../../../pictures/drawings/draw-ringfence.js'
import { readShownChanges } from '../../../pictures/facts/change-facts.js'
import { readShownRingfences } from '../../../pictures/facts/ringfence-facts.js'
import { renderInline } from '../../../pictures/page/render-svg.js'
import type { ShownCall } from '../../../schemas/approvals.js'

/** Bytes of HTML: the change in words has the rest of the page. */
const MOST_BYTES = 200_000

/**
 * What a call would do to policy as a drawing, without script or style of its own; empty for a call that changes none, and for a drawing that
 * would be too large. Everything in it is in words below it, so a narrow window goes without.
 */
export function renderPicture(shown: ShownCall): string {
  if (!shown.objects.some(({ effect }) => effect !== undefined)) return ''
  // As every text of the page: what hides is undone and done again, so that nothing hides (D155).
  const safe = makeSafe(readEscapes(shown))
  const ringfences = readShownRingfences(safe)
  const picture = ringfences === null ? drawChange(readShownChanges(safe)) : drawRingfence(ringfences)
  const drawing = renderInline(picture.views[0].drawing, 'drawing').text
  if (Buffer.byteLength(drawing) > MOST_BYTES) return ''
  const entries = picture.legend.map(({ sample, text }) => html`<li>!${sample.text} ${text}</li>`).join('')
  return html`<section class="card drawing" aria-labelledby="drawing">
    <h2 id="drawing">Drawn</h2>
    <p class="hint">All of it, and what is not drawn, is in words below.</p>
    <div>!${drawing}</div>
    <ul class="legend">
      !${entries}
    </ul>
    !${picture.notes.length === 0 ? '' : html`<p class="hint">${picture.notes.join(' ')}</p>`}
  </section>`
}
