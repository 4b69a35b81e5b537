import type { PceClient } from '../../pce-client/index.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { Version } from '../inventory/find-object.js'

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
