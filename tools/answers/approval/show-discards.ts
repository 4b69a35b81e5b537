import type { TypedPendingChange } from '../../../pce-client/index.js'
import type { Preview } from '../../../domain/call.js'
import { updateTypeOf, type Dependency } from '../../../domain/policy/choose-changes.js'
import type { ShownField, ShownObject } from '../../../schemas/approvals.js'
import type { FieldChange, PolicyChange } from '../../../schemas/policy-changes.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { kindOf } from '../policy-words.js'
import { nameOf, showBeside, showSides } from './show-pending.js'

interface DiscardForApproval {
  changes: readonly TypedPendingChange[]
  /** What would be lost, by href of the pending change. A change without an entry was not read. */
  losses: ReadonlyMap<string, PolicyChange>
  included: readonly Dependency[]
  rest: readonly TypedPendingChange[]
  warnings: readonly string[]
}

/**
 * Returns what a person sees before pending changes are discarded: each object field by field, with its draft and
 * active values.
 */
export function showDiscardForApproval(discard: DiscardForApproval): NonNullable<Preview['page']> {
  const { changes, losses, included, rest, warnings } = discard
  const created = changes.filter((change) => updateTypeOf(change) === 'create').length
  return {
    warnings: [
      ...(created > 0
        ? [`${countOf(created, 'object')} of ${changes.length} exist in the draft alone, and are gone for good.`]
        : []),
      ...warnings,
    ],
    objects: showDiscards(changes, losses),
    objects_total: changes.length,
    ...showBeside(changes, included, rest),
  }
}

/**
 * Returns the objects whose pending changes would be lost. New objects come first, because nothing of them would
 * remain.
 */
export function showDiscards(
  changes: readonly TypedPendingChange[],
  losses: ReadonlyMap<string, PolicyChange>,
): ShownObject[] {
  const rank = (change: TypedPendingChange) => (updateTypeOf(change) === 'create' ? 0 : 1)
  return changes.toSorted((a, b) => rank(a) - rank(b)).map((change) => showLoss(change, losses.get(change.href)))
}

/** The effect of discarding on the draft: a new object is deleted, a changed one reverts, a deleted one is restored. */
const BECOMES: Record<string, { change: ShownObject['change']; note: string }> = {
  create: { change: 'delete', note: 'It was never provisioned: it is gone for good.' },
  update: { change: 'update', note: 'It goes back to what is in force.' },
  delete: { change: 'create', note: 'Its deletion is taken back: it stays.' },
}

function showLoss(change: TypedPendingChange, loss: PolicyChange | undefined): ShownObject {
  const { change: becomes, note } = BECOMES[updateTypeOf(change) ?? ''] ?? {
    change: 'unknown',
    note: 'Its change is lost.',
  }
  const { updated_at: at, updated_by: by, diff_error: error } = loss ?? {}
  const unread =
    loss === undefined
      ? ' What is lost in it was not read.'
      : error === undefined
        ? ''
        : ` What is lost in it could not be read: ${error}`
  const parts = (loss?.rules ?? []).map((rule): ShownObject => ({
    kind: `${rule.rule_type.replaceAll('_', ' ')} rule`,
    ...nameOf(rule.rule),
    href: rule.href,
    change: rule.change === 'added' ? 'delete' : rule.change === 'removed' ? 'create' : 'update',
    fields: (rule.fields ?? []).map(showField),
  }))
  return {
    kind: kindOf(change.type),
    ...nameOf(loss?.name ?? change.name),
    href: change.href,
    change: becomes,
    ...(at !== undefined && { updated_at: at }),
    ...(by !== undefined && { updated_by: by.name ?? by.href }),
    fields: (loss?.fields ?? []).map(showField),
    ...(parts.length > 0 && { parts }),
    note: `${note}${unread}`,
  }
}

/** Shows a field changing from its draft value to its active value. */
const showField = ({ field, draft, active }: FieldChange): ShownField => showSides(field, draft, active)
