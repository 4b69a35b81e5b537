import type { ObjectApi, PceClient } from '../../pce-client/index.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { createNamed } from './create-named.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { PlannedRule } from './plan-rules.js'
import { saysTheSame } from './warn-of-repetition.js'
import { writeWithRollback } from './write-with-rollback.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { findDifferences, type Difference } from '../policy/compare-stored.js'

/** The body of the request that creates a rule set, without its rules. */
export interface RuleSetBody {
  name: string
  description?: string
  scopes: RuleSet['scopes']
}

/** Returns the rule set that this body and these rules would create. Its rules have made-up hrefs below `href`. */
export function plannedRuleSet(href: string, body: RuleSetBody, rules: readonly PlannedRule[]): RuleSet {
  const of = (wanted: PlannedRule['collection']) =>
    rules.flatMap(({ collection, body: rule }, at) =>
      collection === wanted ? [{ ...rule, href: `${href}/${wanted}/${at}` }] : [],
    )
  return { ...body, href, enabled: true, rules: of('sec_rules') as Rule[], deny_rules: of('deny_rules') }
}

/**
 * Creates a draft rule set and its rules in order, and returns their hrefs. If a rule cannot be created, the rule set
 * is deleted again together with all its rules, including rules whose creation was not confirmed.
 */
export function writeRuleSet(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  body: RuleSetBody,
  rules: readonly PlannedRule[],
): Promise<{ ruleSet: RuleSet; ruleHrefs: string[] }> {
  const { pce, signal } = ctx
  return writeWithRollback(pce, {
    nested: true,
    write: async (written) => {
      const ruleSet = await createNamed(ctx, 'rule_sets', body)
      written.hrefs.push(ruleSet.href)
      const ruleHrefs: string[] = []
      for (const rule of rules) {
        const api = (rule.collection === 'sec_rules' ? pce.rules : pce.denyRules) as ObjectApi<PceObject>
        // The signal is checked before each rule. A server that is about to stop has time to delete one rule set, but
        // not to create many more rules.
        signal.throwIfAborted()
        const created = await api.create(rule.body, ruleSet.href)
        written.hrefs.push(created.href)
        ruleHrefs.push(created.href)
      }
      return { ruleSet, ruleHrefs }
    },
  })
}

const collectionOf = (href: string) => (href.includes('/deny_rules/') ? 'deny_rules' : 'sec_rules')

/** The differences between a new rule set as it was sent and as the PCE stored it. */
export interface StoredRuleSet {
  differences: Difference[]
  /** The differences of each rule, in the order of the plan. */
  ruleDifferences: Difference[][]
  /**
   * The reason why the comparison was not possible, or a warning that somebody else added the same rules at the same
   * time (D225).
   */
  warning?: string
}

/**
 * Reads a new rule set back and compares it with what was sent. A failure to read it is a warning and not an error,
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
  const own = new Set(ruleHrefs)
  const surplus = all.filter(
    (rule) =>
      !own.has(rule.href) &&
      rule.update_type !== 'delete' &&
      rules.some(
        ({ collection, body: sent }) =>
          collection === collectionOf(rule.href) && sent.enabled === (rule.enabled ?? true) && saysTheSame(sent, rule),
      ),
  )
  const hrefs = surplus.map(({ href: one }) => toDraftHref(one)).join(', ')
  return {
    ...(surplus.length > 0 && {
      warning: `Somebody else added the same as this call at the same time: delete ${hrefs}.`,
    }),
    differences: findDifferences(body, stored),
    ruleDifferences: rules.map(({ body: sent }, index) => {
      const rule = all.find((candidate) => candidate.href === ruleHrefs[index])
      return rule === undefined ? [{ field: 'rule', sent, stored: null }] : findDifferences(sent, rule)
    }),
  }
}
