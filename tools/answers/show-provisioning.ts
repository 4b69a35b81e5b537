import type { TypedPendingChange } from '../../pce-client/index.js'
import { showAssumedBy } from '../../schemas/assumes.js'
import type { Limits } from '../../schemas/config.js'
import type { PolicyImpact } from '../../schemas/pce/policy.js'
import type { Preview } from '../../domain/call.js'
import { showPending, updateTypeOf, type Dependency } from '../../domain/policy/choose-changes.js'
import type { JudgedChange } from '../../schemas/policy-changes.js'
import { clipText, quote } from '../../domain/text/escape-text.js'
import { countRowsThatFit, rowsWithin } from './byte-budget.js'
import { LONGEST_NAME, describeEffects, explainWords, worstFirst } from './explain-changes.js'
import { kindOf } from './policy-words.js'

export interface Provisioning {
  /**
   * All changes to provision, including dependencies. They are shown in this order, except that changes with worse
   * effects come first.
   */
  changes: readonly TypedPendingChange[]
  included: readonly Dependency[]
  /** The effects of the changes, by href. A change without an entry was not evaluated. */
  judged: ReadonlyMap<string, JudgedChange>
  impact: PolicyImpact | undefined
  /**
   * Sentences about the changes, such as which objects could not be read and which changes were made by other people.
   */
  notes: readonly string[]
  isDryRun: boolean
}

/** Maximum size, in bytes, of one list in a preview. It is enough to recognise what the list contains. */
const LIST_BYTES = 3000
const MOST_NAMED = 5
const DEEDS: Record<string, string> = { delete: 'deleted', update: 'updated', create: 'created' }

/**
 * Sorts changes for review: deletions, then updates, then new objects. Deletions and updates come first because they
 * change the active policy.
 */
export function orderForReview(changes: readonly TypedPendingChange[]): TypedPendingChange[] {
  const rank = (change: TypedPendingChange) => ['delete', 'update', 'create'].indexOf(updateTypeOf(change) ?? '')
  return [...changes].sort((a, b) => rank(a) - rank(b))
}

/**
 * Describes, for the person who confirms the call, what provisioning these changes would do: a summary and, for each
 * list of changes, as many first entries as LIST_BYTES allows.
 */
export function showProvisioning({
  changes,
  included,
  judged,
  impact,
  notes,
  isDryRun,
}: Provisioning): Omit<Preview, 'boundTo'> {
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  if (changes.length === 0) return { summary: `Nothing is pending, so the call would change nothing.${dry}` }
  const rows = worstFirst(changes.map((change) => showRow(change, judged.get(change.href))))
  const shown = rowsWithin(rows, LIST_BYTES)
  const along = rowsWithin([...included], LIST_BYTES)
  const sentences = [
    `Makes ${changes.length === 1 ? 'a pending change' : `${changes.length} pending changes`} active, so that VENs enforce ${changes.length === 1 ? 'it' : 'them'}: ${describeCounts(changes)}.`,
    `${changes.length > MOST_NAMED ? 'Among them' : 'Affected'}: ${namesOf(changes)}.`,
    included.length > 0
      ? `Not named in the call, but required by what is: ${included.length === 1 ? 'one' : included.length} of these.`
      : '',
    ...notes,
    describeEffects(rows.map((row) => ({ ...row, isUnjudged: !judged.has(row.href) }))),
    describeImpact(impact),
  ]
  return {
    summary: `${sentences.filter(Boolean).join(' ')}${dry}`,
    details: {
      changes_total: changes.length,
      meanings: explainWords(rows),
      ...showAssumedBy([...judged.values()]),
      changes: shown,
      ...(shown.length < rows.length && { changes_left_out: rows.length - shown.length }),
      ...(included.length > 0 && { dependencies_total: included.length, dependencies_included: along }),
      ...(impact !== undefined && { impact }),
      look_closer:
        'compare-draft-active shows each change field by field, and review-draft with the href of a change the pairs of observed traffic that it concerns.',
    },
  }
}

function showRow(change: TypedPendingChange, judged: JudgedChange | undefined) {
  const { href, type, name } = change
  const updateType = updateTypeOf(change)
  return {
    href,
    type,
    ...(name !== undefined && { name: clipText(name, 2 * LONGEST_NAME) }),
    ...(updateType !== null && { update_type: updateType }),
    ...(judged?.risks !== undefined && { risks: judged.risks }),
    ...(judged?.effect !== undefined && { effect: judged.effect }),
    ...(judged?.effect_note !== undefined && { effect_note: judged.effect_note }),
    ...(judged?.effect_by_rule_type !== undefined && { effect_by_rule_type: judged.effect_by_rule_type }),
    ...(judged?.diff_error !== undefined && { diff_error: judged.diff_error }),
    ...(judged?.updated_at !== undefined && { updated_at: judged.updated_at }),
    ...(judged?.updated_by !== undefined && { updated_by: judged.updated_by.name ?? judged.updated_by.href }),
  }
}

export function describeCounts(changes: readonly TypedPendingChange[]): string {
  const counts = new Map<string, number>()
  for (const change of changes) {
    const key = `${change.type} ${DEEDS[updateTypeOf(change) ?? ''] ?? 'changed'}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .map(([key, count]) => {
      const [type = '', deed] = key.split(' ')
      return `${count} ${kindOf(type, count)} ${deed}`
    })
    .join(', ')
}

/**
 * Returns the names of changes in quotation marks. Anyone who creates an object can choose its name, so names are
 * escaped to keep them from closing the quotation marks.
 */
export const namesOf = (changes: readonly TypedPendingChange[]): string =>
  changes
    .slice(0, MOST_NAMED)
    .map(({ name, href }) => (name === undefined ? href : quote(clipText(name, LONGEST_NAME))))
    .join(', ')

function describeImpact(impact: Partial<PolicyImpact> = {}): string {
  const { num_managed_workloads: managed, all_workloads_optimization: isRough } = impact
  if (!Number.isInteger(managed)) return 'The PCE did not say how many workloads are affected.'
  return `The PCE counts ${isRough === true ? 'about ' : ''}${managed} managed ${managed === 1 ? 'workload' : 'workloads'} affected.`
}

/** Returns as many changes as fit next to the rest of the answer (`envelope`), with a warning if some are left out. */
export function fitChanges(
  chosen: readonly TypedPendingChange[],
  envelope: object,
  warnings: readonly string[],
  limits: Limits,
) {
  const changes = chosen.map(showPending)
  const note = (kept: number) =>
    `changes lists ${kept} of ${changes.length}; the list of hrefs is complete, and a call with hrefs is about these alone.`
  const kept = countRowsThatFit(changes, [envelope, { changes: [] }, warnings, note(changes.length)], limits)
  const said = kept < changes.length ? [...warnings, note(kept)] : warnings
  return { changes: changes.slice(0, kept), ...(said.length > 0 && { warnings: [...said] }) }
}
