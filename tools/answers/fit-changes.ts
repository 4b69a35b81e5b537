import { showPending } from '../../domain/policy/choose-changes.js'
import type { TypedPendingChange } from '../../pce-client/index.js'
import type { Limits } from '../../schemas/config.js'
import { countRowsThatFit } from './split-format.js'

/**
 * The changes beside the rest of an answer, `envelope`, as many as the budget leaves room for; a warning says when some are
 * left out.
 */
export function fitChanges(
  chosen: readonly TypedPendingChange[],
  envelope: object,
  warnings: readonly string[],
  limits: Limits,
) {
  const changes = chosen.map(showPending)
  const note = (kept: number) => `changes lists ${kept} of ${changes.length}; the hrefs beside it are complete.`
  const kept = countRowsThatFit(changes, [envelope, { changes: [] }, warnings, note(changes.length)], limits)
  const said = kept < changes.length ? [...warnings, note(kept)] : warnings
  return { changes: changes.slice(0, kept), ...(said.length > 0 && { warnings: [...said] }) }
}
