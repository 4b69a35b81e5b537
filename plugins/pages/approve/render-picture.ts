import { html } from 'ghtml'
import { makeSafe, readEscapes } from '../../../domain/text/escape-text.js'
import { drawChange } from '../../../pictures/drawings/draw-change.js'
import { drawRingfence } from '../../../pictures/drawings/draw-ringfence.js'
import { readShownChanges } from '../../../pictures/facts/change-facts.js'
import { readShownRingfences } from '../../../pictures/facts/ringfence-facts.js'
import { renderInline } from '../../../pictures/page/render-svg.js'
import type { ShownCall } from '../../../schemas/approvals.js'

/**
 * Maximum size of the drawing of a change, in bytes of HTML. The rest of the page must have space for the description
 * of the change.
 */
const MOST_BYTES = 200_000

/**
 * Draws what a call would do to the policy. The drawing contains neither a script nor a style sheet. Returns an empty
 * text if the call does not change policy, or if the drawing would be too large. The text below the drawing has the
 * same content, so the drawing can be hidden in a narrow window.
 */
export function renderPicture(shown: ShownCall): string {
  if (!shown.objects.some(({ effect }) => effect !== undefined)) return ''
  // The escapes in stored names are decoded, and all hidden characters are escaped again, as on the rest of the page
  // (D155).
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
