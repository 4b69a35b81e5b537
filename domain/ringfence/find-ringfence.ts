import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { ToolContext } from '../call.js'
import type { Version } from '../inventory/find-object.js'
import { loadDenyRules } from '../inventory/read-rules.js'

/** Whether an application has its ringfence, and what stands in its place. */
export interface RingfenceFound {
  /** The name that was looked for. */
  name: string
  /** The rule set of exactly this name and exactly the scope `[[app, env]]`, disabled ones included; null: there is none. */
  ruleSet: RuleSet | null
  /** Rule sets of exactly this name that are not it. They keep the name taken. */
  conflicts: { ruleSet: RuleSet; why: 'other_scope' | 'pending_deletion' }[]
}

/** Name of an application's ringfence unless its maker chose another: `RF-<app>-<env>` (T15). */
export const ringfenceName = (application: readonly Label[]): string =>
  ['RF', ...application.map(({ value }) => value)].join('-')

/**
 * The ringfence of an application, given by its app and its env label in this order, in one version of the policy. A draft that
 * is marked for deletion is a conflict, not a ringfence. Throws what the PCE client throws.
 */
export async function findRingfence(
  pce: Pick<PceClient, 'ruleSets'>,
  application: readonly Label[],
  version: Version,
  signal: AbortSignal,
  name = ringfenceName(application),
): Promise<RingfenceFound> {
  const { items } = await fetchEvery({ api: pce.ruleSets, policyVersion: version, params: { name }, signal })
  const found: RingfenceFound = { name, ruleSet: null, conflicts: [] }
  // The PCE searches substrings, so the exact comparison is ours.
  for (const ruleSet of items.filter((item) => item.name === name)) {
    if (!hasScope(ruleSet, application)) found.conflicts.push({ ruleSet, why: 'other_scope' })
    else if (ruleSet.update_type === 'delete') found.conflicts.push({ ruleSet, why: 'pending_deletion' })
    else found.ruleSet ??= ruleSet
  }
  return found
}

/** One scope of these labels, each once, in whatever order, and nothing else in it. */
export function hasScope({ scopes }: Pick<RuleSet, 'scopes'>, labels: readonly Label[]): boolean {
  const [scope, ...others] = scopes
  if (scope === undefined || others.length > 0 || scope.length !== labels.length) return false
  const wanted = new Set(labels.map(({ href }) => href))
  return scope.every(({ label, exclusion }) => exclusion !== true && label !== undefined && wanted.delete(label.href))
}

/**
 * The application's ringfence of this name with its deny rules, or null. Throws already_exists {existing_ruleset, reason} where
 * the name belongs to something else, is disabled or waits for its deletion: rules written into that would not do what they say.
 */
export async function findOwnRuleSet(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  application: readonly Label[],
  name: string,
): Promise<RuleSet | null> {
  const { ruleSet, conflicts } = await findRingfence(pce, application, 'draft', signal, name)
  const [conflict] = conflicts
  if (ruleSet === null) {
    if (conflict !== undefined) throw inTheWay(conflict.ruleSet, conflict.why, CONFLICTS[conflict.why])
    return null
  }
  if (!ruleSet.enabled)
    throw inTheWay(ruleSet, 'disabled', 'is disabled; enable it with update-ruleset, or choose another name')
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  if (complete === undefined || complete.error !== undefined) {
    const text = `The deny rules of ${name} could not be read, so nothing was planned or written. ${complete?.error ?? ''}`
    throw new ToolError('pce_error', text.trim(), { ruleset: { href: ruleSet.href, name } })
  }
  return complete.ruleSet
}

const CONFLICTS = {
  other_scope: 'has another scope than exactly this app and env label; choose another ruleset_name',
  pending_deletion: 'waits for its deletion; provision or revert that first, or choose another ruleset_name',
}

function inTheWay({ href, name }: RuleSet, reason: string, why: string): ToolError {
  return new ToolError('already_exists', `The rule set ${name} exists and ${why}. Nothing was written.`, {
    existing_ruleset: { href, name },
    reason,
  })
}
