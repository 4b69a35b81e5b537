import { toDraftHref } from '../inventory/parse-href.js'
import { compareTexts } from '../text/compare-texts.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import { mayLetIn, type PlacedRule } from './match-rules.js'
import { portsOf, sharePorts, type PortRange } from './match-services.js'
import type { RuleType } from './rule-type.js'

/** A rule in force with the name of its rule set and the policy in which it was found. */
export interface RuleOnPorts {
  placed: PlacedRule
  ruleSet: string
  policy: PolicySnapshot
}

/**
 * Lists the rules of one type that are in force in any of these policies and cover one of the ports, with their rule
 * sets. A rule that several policies have is listed once, as the first of them has it. Allow rules whose providers are
 * addresses alone are left out: they are sent to sources only, so no destination lets anything in by them.
 */
export function findRulesOn(
  policies: readonly PolicySnapshot[],
  ports: readonly PortRange[],
  type: RuleType,
): RuleOnPorts[] {
  const found = new Map<string, RuleOnPorts>()
  for (const policy of policies)
    for (const ruleSet of policy.ruleSets)
      for (const placed of rulesInForce({ ruleSets: [ruleSet], boundaries: [] }, type)) {
        const id = toDraftHref((placed.rule as { href?: string }).href ?? '')
        const shares = sharePorts(portsOf(placed.rule.ingress_services, policy), ports)
        if (type === 'allow' && !mayLetIn(placed, policy)) continue
        if (shares && !found.has(id)) found.set(id, { placed, ruleSet: ruleSet.name, policy })
      }
  return [...found].sort(([a], [b]) => compareTexts(a, b)).map(([, one]) => one)
}
