import type { RingfenceFound } from '../ringfence/find-ringfence.js'

/** Whether an application's ringfence stands in the draft, and whether it is in force. */
export interface RingfenceState {
  /** The name looked for. */
  name: string
  href?: string
  enabled?: boolean
  /** Enabled allow and deny rules. */
  rules?: number
  /** The active policy has it, enabled. */
  provisioned: boolean
  /** The draft differs from what is provisioned. */
  pending_changes: boolean
  /** Why a rule set of this name is not the ringfence. */
  conflicts: { href: string; why: 'other_scope' | 'pending_deletion' }[]
}

/** Both versions as one. A ringfence exists when the draft has it (T15, T10). */
export function describeRingfence(draft: RingfenceFound, active: RingfenceFound): RingfenceState {
  const { ruleSet } = draft
  return {
    name: draft.name,
    ...(ruleSet !== null && {
      href: ruleSet.href,
      enabled: ruleSet.enabled,
      rules: [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].filter(
        (rule) => rule.enabled && rule.update_type !== 'delete',
      ).length,
    }),
    provisioned: active.ruleSet?.enabled === true,
    pending_changes: typeof ruleSet?.update_type === 'string',
    conflicts: draft.conflicts.map(({ ruleSet: { href }, why }) => ({ href, why })),
  }
}
