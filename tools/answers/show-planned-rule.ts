import { showNamed, showResolved } from '../../domain/drafts/plan-rule-change.js'
import type { PlannedRule } from '../../domain/drafts/plan-rules.js'
import { showActors } from './show-rules.js'

/** A rule in the words of the answer; names come from its own resolution. */
export function showPlannedRule(rule: PlannedRule) {
  const ends = [...rule.providers, ...rule.consumers].flatMap((actor) => Object.values(actor) as unknown[])
  const known = new Map(ends.flatMap((end) => (isNamed(end) ? [[end.href, end] as const] : [])))
  const names = (href: string) => {
    const { key, value, name } = known.get(href) ?? {}
    return { key, value, name: name ?? undefined }
  }
  return {
    rule_type: rule.type,
    providers: showActors(rule.providers, names),
    consumers: showActors(rule.consumers, names),
    services: showResolved(rule.services),
    ...(rule.egress.length > 0 && { egress_services: rule.egress.map(showNamed) }),
    unscoped_consumers: rule.unscoped,
  }
}

function isNamed(end: unknown): end is { href: string; key?: string; value?: string; name?: string | null } {
  return typeof end === 'object' && end !== null && 'href' in end
}
