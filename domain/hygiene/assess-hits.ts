import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { loadLabels } from '../inventory/labels.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import { isInForce, loadSnapshot, rulesOf, withDenyRules } from '../policy/load-snapshot.js'
import { namesOf, withUserGroups } from '../policy/name-references.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import type { RuleType } from '../policy/rule-type.js'
import { workInTurns } from '../text/pace-work.js'
import { judgeHits, readRuleHits, type RuleHits } from './rule-hits.js'

/** An active rule without hits. `ruleSet` is the name of its rule set. */
export interface UnhitRule {
  type: RuleType
  rule: AnyRule
  ruleSet: string
}

export interface HitReport extends Pick<RuleHits, 'from' | 'to' | 'report'> {
  without: UnhitRule[]
  counts: Record<
    'in_force' | 'hit' | 'without_hits' | 'younger_than_window' | 'partly_counted' | 'not_in_report',
    number
  >
  names: ReferenceNames
}

/**
 * Finds active rules without hits, or returns a sentence that says why they cannot be determined. `days` is the minimum
 * number of days that the hit report must cover.
 */
export async function assessHits(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>,
  days: number,
): Promise<HitReport | string> {
  const labels = await loadLabels(ctx.pce, ctx)
  const counted = await readRuleHits(ctx, days, labels)
  if (typeof counted === 'string') return counted
  const policy = await withDenyRules(ctx, await loadSnapshot(ctx, 'active', labels))
  const rules = policy.ruleSets.filter(isInForce).flatMap((ruleSet) =>
    RULE_TYPES.flatMap((type) =>
      rulesOf(ruleSet, type).map((rule) => ({
        type,
        rule,
        ruleSet: ruleSet.name,
        scopes: ruleSet.scopes,
        href: rule.href,
        created: rule.created_at ?? '',
      })),
    ),
  )
  const found = await workInTurns(judgeHits(rules, counted, policy), ctx.signal)
  const without = found.without.flatMap((at) => rules[at] ?? [])
  return {
    from: counted.from,
    to: counted.to,
    report: counted.report,
    without,
    counts: {
      in_force: rules.length,
      hit: found.hit,
      without_hits: found.without.length,
      younger_than_window: found.young,
      partly_counted: found.unheard,
      not_in_report: found.uncounted,
    },
    names: await withUserGroups(
      ctx,
      namesOf(policy, () => undefined),
      without.map(({ rule }) => rule),
    ),
  }
}
