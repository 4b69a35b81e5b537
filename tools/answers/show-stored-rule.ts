import type { DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../../domain/call.js'
import { namesOrHrefs } from '../../domain/inventory/names-or-hrefs.js'
import { showRule } from './show-rules.js'
import type { RuleType } from '../../domain/policy/rule-type.js'

/** A stored rule in an answer, with the names of what it points at as far as they can be read. */
export async function showStoredRule(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  rule: Rule | DenyRule,
  type: RuleType,
) {
  const { providers, consumers, ingress_services: ingress, egress_services: egress } = rule
  const names = await namesOrHrefs(ctx.pce, [providers, consumers, ingress, egress], ctx)
  return showRule(rule, type, names)
}
