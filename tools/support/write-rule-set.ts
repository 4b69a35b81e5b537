import { PceApiError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { fetchEvery } from './fetch-slice.js'
import type { PlannedRule } from './plan-rules.js'
import { writeWithRollback } from './write-with-rollback.js'

/** Payload of a new rule set, without its rules. */
export interface RuleSetBody {
  name: string
  description?: string
  scopes: RuleSet['scopes']
}

/** Throws already_exists {existing_ruleset} when a draft rule set bears exactly this name. */
export async function refuseTakenName(pce: PceClient, name: string, signal: AbortSignal): Promise<void> {
  const { items } = await fetchEvery({ api: pce.ruleSets, params: { name }, signal })
  const existing = items.find((ruleSet) => ruleSet.name === name)
  if (existing === undefined) return
  // A name stays taken until its deletion is provisioned (pce-api a.4).
  const state = existing.update_type === 'delete' ? ' Its deletion is pending; provision it to free the name.' : ''
  throw new ToolError('already_exists', `A rule set named "${name}" exists already.${state}`, {
    existing_ruleset: { href: existing.href, name: existing.name },
  })
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
      const ruleSet = await createRuleSet(pce, body, signal)
      written.hrefs.push(ruleSet.href)
      const ruleHrefs: string[] = []
      for (const rule of rules) {
        const api = (rule.collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<PceObject>
        const created = await api.create(rule.body, ruleSet.href)
        written.hrefs.push(created.href)
        ruleHrefs.push(created.href)
      }
      return { ruleSet, ruleHrefs }
    },
  })
}

async function createRuleSet(pce: PceClient, body: RuleSetBody, signal: AbortSignal): Promise<RuleSet> {
  try {
    return await pce.ruleSets.create(body)
  } catch (error) {
    // Somebody else took the name after our look.
    if (error instanceof PceApiError && error.errors.some(({ token }) => token === 'rule_set_name_in_use')) {
      await refuseTakenName(pce, body.name, signal)
    }
    throw error
  }
}
