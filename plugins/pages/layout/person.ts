import { html } from 'ghtml'
import { clipText, escapeText } from '../../../domain/text/escape-text.js'
import type { Identity, Role } from '../../../schemas/caller.js'

const LONGEST_SHOWN = 300

/**
 * Prepares a name from the identity provider for display, so that one name cannot be made to look like another. The
 * result must still be HTML-encoded.
 */
export const showName = (text: string): string => escapeText(clipText(text, LONGEST_SHOWN))

/** Renders the name of the person who is logged in. */
export function renderPerson({ identity, role }: { identity: Identity; role: Role | null }): string {
  const { name, sub, iss } = identity
  const account = name === undefined || name === sub ? '' : html`<bdi>${showName(sub)}</bdi> · `
  return html`<p class="who">
    You are <b><bdi>${showName(name ?? sub)}</bdi></b> <span class="badge plain">${role ?? 'no role'}</span><br />
    <span class="hint">!${account}logged in at <bdi>${showName(iss)}</bdi></span>
  </p>`
}
