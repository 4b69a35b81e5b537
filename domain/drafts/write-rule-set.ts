import type { ObjectApi, PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { createNamed } from './create-named.js'
import type { PlannedRule } from './plan-rules.js'
import { writeWithRollback } from './write-with-rollback.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { findDifferences, type Difference } from '../policy/compare-stored.js'

/** Body of a new rule set, without its rules. */
export interface RuleSetBody {
  name: string
  description?: string
  scopes: RuleSet['scopes']
}

/**
 * Creates a draft rule set and its rules in order, and returns their hrefs. If a rule fails, the rule set is deleted
 * again together with all its rules, including any whose creation was not confirmed.
 */
export function writeRuleSet(
  pce: PceClient,
  body: RuleSetBody,
  rules: readonly PlannedRule[],
  signal: AbortSignal,
): Promise<{ ruleSet: RuleSet; ruleHrefs: string[] }> {
  return writeWithRollback(pce, {
    nested: true,
    write: async (written) => {
      const ruleSet = await createNamed(pce, 'rule_sets', body, signal)
      written.hrefs.push(ruleSet.href)
      const ruleHrefs: string[] = []
      for (const rule of rules) {
        const api = (rule.collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<PceObject>
        // Checked before each rule: a server that is about to stop has time to delete one rule set, but not to create
        // many more rules.
        signal.throwIfAborted()
        const created = await api.create(rule.body, ruleSet.href)
        written.hrefs.push(created.href)
        ruleHrefs.push(created.href)
      }
      return { ruleSet, ruleHrefs }
    },
  })
}

/** The differences between a new rule set as it was sent and as the PCE stored it. */
export interface StoredRuleSet {
  differences: Difference[]
  /** The differences of each rule, in the order of the plan. */
  ruleDifferences: Difference[][]
  /** The reason why the comparison was not possible. */
  warning?: string
}

/**
 * Reads a new rule set back and compares it with what was sent. If reading fails, this is a warning, not an error,
 * because the rule set exists.
 */
export async function verifyRuleSet(
  pce: PceClient,
  href: string,
  body: RuleSetBody,
  rules: readonly PlannedRule[],
  ruleHrefs: readonly string[],
  signal: AbortSignal,
): Promise<StoredRuleSet> {
  const unknown = (why: string) => ({ differences: [], ruleDifferences: rules.map(() => []), warning: why })
  let stored: RuleSet
  try {
    const [complete] = await loadDenyRules(pce, [await pce.ruleSets.getByReference(href, { signal })], signal)
    if (complete === undefined || complete.error !== undefined)
      return unknown('Created, but its deny rules could not be read back.')
    stored = complete.ruleSet
  } catch {
    return unknown('Created, but it could not be read back to check what was stored.')
  }
  const all = [...(stored.rules ?? []), ...(stored.deny_rules ?? [])]
  return {
    differences: findDifferences(body, stored),
    ruleDifferences: rules.map(({ body: sent }, index) => {
      const rule = all.find((candidate) => candidate.href === ruleHrefs[index])
      return rule === undefined ? [{ field: 'rule', sent, stored: null }] : findDifferences(sent, rule)
    }),
  }
}
