import type { TypedPendingChange } from '../../../pce-client/index.js'
import type { Preview } from '../../../domain/call.js'
import type { Dependency } from '../../../domain/policy/choose-changes.js'
import { isMixed, rankForReview } from '../../../domain/policy/judge-change.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import type { ShownEffect, ShownField, ShownObject } from '../../../schemas/approvals.js'
import type { PolicyImpact } from '../../../schemas/pce/policy.js'
import { type FieldChange, type PolicyChange, type Risk, RISK_MEANINGS } from '../../../schemas/policy-changes.js'
import { joinEffects, kindOf } from '../policy-words.js'
import { changeOf, nameOf, showBeside, showSides } from './show-pending.js'

interface PendingForApproval {
  /** The changes to provision, in the order in which a person reviews them. */
  changes: readonly TypedPendingChange[]
  included: readonly Dependency[]
  /** The compared changes with their differences, by href. A change without an entry was not compared. */
  judged: ReadonlyMap<string, PolicyChange>
  /** Pending changes that the call does not provision. */
  rest: readonly TypedPendingChange[]
  impact: PolicyImpact | undefined
}

/**
 * Returns what a person sees before pending changes are provisioned: each object field by field. Changes that permit
 * more come first.
 */
export function showChangesForApproval(pending: PendingForApproval): NonNullable<Preview['page']> {
  const { changes, included, judged, rest, impact } = pending
  const judgedOf = ({ href }: TypedPendingChange) => judged.get(href)
  const ranked = [...changes].sort((a, b) => rankOf(judgedOf(a)) - rankOf(judgedOf(b)))
  const effect = joinEffects(changes.map((change) => effectOf(judgedOf(change))))
  const { num_managed_workloads: managed, all_workloads_optimization: isRough } = impact ?? {}
  const draft = describeDraft(changes, judged)
  return {
    ...(changes.length > 0 && { effect }),
    warnings: warnOf(changes, judged),
    objects: ranked.map((change) => showChange(change, judgedOf(change))),
    objects_total: changes.length,
    workloads_affected: Number.isInteger(managed) ? managed! : null,
    ...(isRough === true && { is_rough: true }),
    ...showBeside(changes, included, rest),
    ...(draft && { draft }),
  }
}

function showChange(change: TypedPendingChange, judged: PolicyChange | undefined): ShownObject {
  const common = {
    kind: kindOf(change.type),
    ...nameOf(judged?.name ?? change.name),
    href: change.href,
    change: changeOf(change),
    effect: effectOf(judged),
  }
  if (judged === undefined)
    return { ...common, fields: [], note: 'What changes in it was not read: look at it in the PCE before you decide.' }
  const { effect_note: why, risks, updated_at: at, updated_by: by, diff_error: error } = judged
  const parts = (judged.rules ?? []).toSorted((a, b) => rankForReview(a) - rankForReview(b)).map(showRule)
  return {
    ...common,
    ...(why !== undefined && { effect_note: why }),
    ...warningsOf(risks),
    ...(at !== undefined && { updated_at: at }),
    ...(by !== undefined && { updated_by: by.name ?? by.href }),
    fields: (judged.fields ?? []).map(showField),
    ...(parts.length > 0 && { parts }),
    ...(error !== undefined && { note: `What changes in it could not be read: ${error}` }),
  }
}

type RuleChange = NonNullable<PolicyChange['rules']>[number]

const DEEDS = { added: 'create', changed: 'update', removed: 'delete' } as const

function showRule(rule: RuleChange): ShownObject {
  const { href, rule_type: type, change, rule: line, effect_note: why, risks, fields } = rule
  return {
    kind: `${type.replaceAll('_', ' ')} rule`,
    ...nameOf(line),
    href,
    change: DEEDS[change],
    effect: effectOf(rule),
    ...(why !== undefined && { effect_note: why }),
    ...warningsOf(risks),
    fields: (fields ?? []).map(showField),
  }
}

const showField = ({ field, draft, active }: FieldChange): ShownField => showSides(field, active, draft)

const warningsOf = (risks: readonly Risk[] | undefined) =>
  risks === undefined || risks.length === 0 ? {} : { warnings: risks.map(sentenceOf) }

const sentenceOf = (risk: Risk) => {
  const text = RISK_MEANINGS[risk]
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

type Judged = Pick<PolicyChange, 'effect' | 'effect_note'>

const effectOf = (judged: Judged | undefined): ShownEffect =>
  judged === undefined ? 'undecided' : (judged.effect ?? (isMixed(judged) ? 'mixed' : 'undecided'))

const rankOf = (judged: PolicyChange | undefined): number =>
  judged === undefined ? rankForReview({}) : rankForReview(judged)

function warnOf(changes: readonly TypedPendingChange[], judged: ReadonlyMap<string, PolicyChange>): string[] {
  const known = changes.flatMap(({ href }) => judged.get(href) ?? [])
  const risks = new Set(
    known.flatMap((change) => [...(change.risks ?? []), ...(change.rules ?? []).flatMap((rule) => rule.risks ?? [])]),
  )
  const widening = known.filter((change) => ['widening', 'mixed'].includes(effectOf(change))).length
  const unread = changes.length - known.length
  const undecided = known.filter((change) => effectOf(change) === 'undecided').length
  return [
    ...(unread > 0
      ? [
          `What changes in ${countOf(unread, 'object')} of ${changes.length} was not read, and so neither whether that permits more: look at each in the PCE before you decide.`,
        ]
      : []),
    ...(widening > 0
      ? [`${countOf(widening, 'object')} of ${changes.length} may permit more traffic than today.`]
      : []),
    ...[...risks].map(sentenceOf),
    ...(undecided > 0
      ? [`Of ${countOf(undecided, 'object')} of ${changes.length} it is not known whether more or less is permitted.`]
      : []),
  ]
}

function describeDraft(changes: readonly TypedPendingChange[], judged: ReadonlyMap<string, PolicyChange>) {
  const times = changes.flatMap((change) => judged.get(change.href)?.updated_at ?? change.updated_at ?? []).sort()
  const by = changes.flatMap(({ href, updated_by: author }) => {
    const known = judged.get(href)?.updated_by
    return known?.name ?? known?.href ?? author?.href ?? []
  })
  const [first, last] = [times[0], times.at(-1)]
  return first === undefined || last === undefined
    ? undefined
    : { first_edit: first, last_edit: last, by: [...new Set(by)] }
}
