import type { PceClient } from '../../pce-client/index.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { findDifferences, type Difference } from '../policy/compare-stored.js'
import { loadDenyRules } from '../inventory/load-deny-rules.js'
import type { PlannedRule } from './plan-rules.js'
import type { RuleSetBody } from './write-rule-set.js'

/** What the PCE made of a new rule set. */
export interface StoredRuleSet {
  differences: Difference[]
  /** By rule, in the order of the plan. */
  ruleDifferences: Difference[][]
  /** Why it could not be told. */
  warning?: string
}

/**
 * Reads a new rule set back and compares it with what was sent. It exists by now, so a failure to read is a warning and no
 * error.
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
