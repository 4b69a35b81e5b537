import type { ObjectApi, PceClient } from '../../pce-client/index.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { createNamed } from './create-named.js'
import type { PlannedRule } from './plan-rules.js'
import { writeWithRollback } from './write-with-rollback.js'

/** Payload of a new rule set, without its rules. */
export interface RuleSetBody {
  name: string
  description?: string
  scopes: RuleSet['scopes']
}

/**
 * Creates a draft rule set and its rules in order; returns their hrefs. When a rule fails, the rule set is deleted again, and
 * with it every rule, known to us or not.
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
        // A server that stops has the time to take one rule set back, and not to make many rules.
        signal.throwIfAborted()
        const created = await api.create(rule.body, ruleSet.href)
        written.hrefs.push(created.href)
        ruleHrefs.push(created.href)
      }
      return { ruleSet, ruleHrefs }
    },
  })
}
