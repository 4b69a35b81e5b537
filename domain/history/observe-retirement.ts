import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { loadLabels } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { rulesInForce } from '../policy/load-snapshot.js'
import { withoutExpired, type ExpiredRule, type Retirement } from './find-expired.js'
import type { WholePolicy } from './load-policy.js'
import { observeReviews, type DraftEvidence } from './observe-draft.js'
import { reviewRuleSets } from './review-policies.js'

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'beforeWriting' | 'limits' | 'now'>

/**
 * Determines for each rule which of the traffic that it matched in the last 30 days depends on it, or was kept away by
 * it. All rules are judged as if they were retired together: traffic that two of them allow depends on both, although
 * either one alone could be retired without cutting it.
 * @throws the errors of the PCE client and of traffic queries.
 */
export async function observeRetirement(
  ctx: Context,
  { active, draft }: { active: WholePolicy; draft: WholePolicy },
  retired: readonly ExpiredRule[],
  action: Retirement,
): Promise<DraftEvidence> {
  const labels = await loadLabels(ctx.pce, ctx)
  const changed = withoutExpired(draft, retired, action)
  const sets = [...new Set(retired.map(({ ruleSet }) => toDraftHref(ruleSet.href)))]
  const { taking, giving } = reviewRuleSets({ active, draft, changed }, sets, labels)
  const policies = [...new Set([taking.was, ...(taking.pending === null ? [] : [taking.pending.was])])]
  const inForce = policies.flatMap((policy) =>
    RULE_TYPES.flatMap((type) => rulesInForce(policy, type).map((placed) => ({ type, placed, policy }))),
  )
  const reviews = retired.map(({ href }) => ({
    href,
    review: { taking, giving, rules: inForce.filter(({ placed }) => hrefOf(placed.rule) === href) },
  }))
  return observeReviews(ctx, labels, reviews, 'mcp-retire-expired')
}

const hrefOf = (rule: { href?: string }): string => toDraftHref(rule.href ?? '')
