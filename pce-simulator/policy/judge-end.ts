import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import type { EnforcementMode } from '../../schemas/pce/workload.js'

/** The rules that apply to a connection at one of its ends, the source or the destination. */
export interface ApplyingRules {
  essential: boolean
  overrideDeny: readonly string[]
  allow: readonly string[]
  deny: readonly string[]
}

/** The PCE's decision on a connection to which no rule applies and which selective mode lets pass (P52). */
export type SelectiveDefault = 'allowed' | 'potentially_blocked'

/**
 * Returns the verdict on a connection at one managed workload. The first applicable step decides, in the order
 * essential rules, override deny, allow, deny, default (P21, P50).
 *
 * | decided by | idle | visibility_only | selective | full |
 * |---|---|---|---|---|
 * | essential, allow | unknown | allowed | allowed | allowed |
 * | override deny, deny | unknown | potentially_blocked | blocked | blocked |
 * | default | unknown | potentially_blocked | `byDefault` | blocked |
 *
 * visibility_only reports without dropping anything, so traffic that enforcement would drop is "potentially" blocked.
 * An idle workload has no policy and only reports snapshots, so its verdict is `unknown`, the least severe one.
 * `unknown` does not exist as a draft decision (P25), so draft decisions treat an idle workload as visibility_only.
 */
export function judgeEnd(
  mode: EnforcementMode,
  rules: ApplyingRules,
  byDefault: SelectiveDefault = 'allowed',
): Verdict {
  const enforces = mode === 'full' || mode === 'selective'
  const verdict = (
    decidedBy: NonNullable<Verdict['decidedBy']>,
    dropped: boolean,
    draft: Verdict['draftDecision'],
  ): Verdict => ({
    decision: mode === 'idle' ? 'unknown' : dropped ? (enforces ? 'blocked' : 'potentially_blocked') : 'allowed',
    decidedBy,
    draftDecision: draft,
    allowRules: rules.allow,
    denyRules: rules.deny,
    overrideDenyRules: rules.overrideDeny,
  })

  if (rules.essential) return verdict('essential', false, 'allowed')
  if (rules.overrideDeny.length > 0) {
    return verdict(
      'override_deny',
      true,
      enforces ? 'blocked_by_override_deny' : 'potentially_blocked_by_override_deny',
    )
  }
  if (rules.allow.length > 0)
    return verdict('allow', false, rules.deny.length > 0 ? 'allowed_across_boundary' : 'allowed')
  if (rules.deny.length > 0)
    return verdict('deny', true, enforces ? 'blocked_by_boundary' : 'potentially_blocked_by_boundary')
  if (mode === 'selective') return { ...verdict('default', false, byDefault), decision: byDefault }
  return verdict('default', true, enforces ? 'blocked' : 'potentially_blocked')
}

/** Returns the more severe of two verdicts. If they are equally severe, the result has the rules of both. */
export function combineVerdicts(one: Verdict, other: Verdict): Verdict {
  const difference = severity(one) - severity(other)
  if (difference !== 0) return difference > 0 ? one : other
  const denyRules = union(one.denyRules, other.denyRules)
  return {
    ...one,
    draftDecision: one.decidedBy === 'allow' && denyRules.length > 0 ? 'allowed_across_boundary' : one.draftDecision,
    allowRules: union(one.allowRules, other.allowRules),
    denyRules,
    overrideDenyRules: union(one.overrideDenyRules, other.overrideDenyRules),
  }
}

const DECISIONS = ['unknown', 'allowed', 'potentially_blocked', 'blocked']
const STEPS = ['default', 'essential', 'allow', 'deny', 'override_deny']

const severity = ({ decision, decidedBy }: Verdict) =>
  DECISIONS.indexOf(decision) * 10 + STEPS.indexOf(decidedBy ?? 'default')

const union = (one: readonly string[], other: readonly string[]) => [...new Set([...one, ...other])]
export const DRAFT_DECISIONS = [
  'allowed',
  'potentially_blocked',
  'blocked',
  'allowed_across_boundary',
  'blocked_by_boundary',
  'blocked_by_override_deny',
  'potentially_blocked_by_boundary',
  'potentially_blocked_by_override_deny',
] as const
export type DraftDecision = (typeof DRAFT_DECISIONS)[number]

export interface Verdict {
  decision: PolicyDecision
  /** The step (see `judgeEnd`) that decided the verdict; null if no managed workload is involved. */
  decidedBy: 'essential' | 'override_deny' | 'allow' | 'deny' | 'default' | null
  /** The verdict as a value of `draft_policy_decision`; null if no managed workload is involved. */
  draftDecision: DraftDecision | null
  /**
   * The hrefs of the rules that apply, by type. They are the rules at the source or at the destination, whichever has
   * the more severe verdict.
   */
  allowRules: readonly string[]
  denyRules: readonly string[]
  overrideDenyRules: readonly string[]
}
