import type { DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../define.js'
import { cleanDeep } from '../../domain/text/clean-text.js'
import { namesOrHrefs } from '../../domain/inventory/names-or-hrefs.js'
import { showRule, type RuleType } from './show-rules.js'

/** A stored rule in an answer, with the names of what it points at as far as they can be read. */
export async function showStoredRule(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  rule: Rule | DenyRule,
  type: RuleType,
) {
  const { providers, consumers, ingress_services: ingress, egress_services: egress } = rule
  const names = await namesOrHrefs(ctx.pce, [providers, consumers, ingress, egress], ctx)
  return cleanDeep(showRule(rule, type, names))
}
