import type { DenyRule, EnforcementBoundary, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { isInForce, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { PlacedRule } from '../policy/match-rules.js'
import { type RuleType, denyType } from '../policy/rule-type.js'

/**
 * A rule together with its rule set. An enforcement boundary counts as a deny rule that has no scope and no rule set
 * (P22).
 */
export interface HeldRule extends PlacedRule {
  kind: RuleType
  /** The draft href of the rule or enforcement boundary. */
  href: string
  source: Rule | DenyRule | EnforcementBoundary
  /** The rule set of the rule; null for an enforcement boundary. */
  ruleSet: RuleSet | null
  /** The reason why the rule is not in force: the rule or its rule set is disabled. Null if the rule is in force. */
  off: 'rule_disabled' | 'ruleset_disabled' | null
}

/**
 * Lists all rules of a policy version, including disabled ones, in the order of the rule sets. Rules marked for
 * deletion are left out.
 */
export function listRules({ ruleSets, boundaries }: Pick<PolicySnapshot, 'ruleSets' | 'boundaries'>): HeldRule[] {
  const held = ruleSets.flatMap((ruleSet) => {
    if (ruleSet.update_type === 'delete') return []
    const place = (rule: Rule | DenyRule, kind: RuleType): HeldRule[] =>
      rule.update_type === 'delete'
        ? []
        : [
            {
              kind,
              href: toDraftHref(rule.href),
              source: rule,
              rule,
              scopes: ruleSet.scopes,
              ruleSet,
              off: !isInForce(ruleSet) ? 'ruleset_disabled' : !isInForce(rule) ? 'rule_disabled' : null,
            },
          ]
    return [
      ...(ruleSet.rules ?? []).flatMap((rule) => place(rule, 'allow')),
      ...(ruleSet.deny_rules ?? []).flatMap((rule) => place(rule, denyType(rule))),
    ]
  })
  const everywhere = boundaries.flatMap((boundary): HeldRule[] =>
    boundary.update_type === 'delete'
      ? []
      : [
          {
            kind: 'deny',
            href: toDraftHref(boundary.href),
            source: boundary,
            rule: { ...boundary, unscoped_consumers: true },
            scopes: [[]],
            ruleSet: null,
            off: isInForce(boundary) ? null : 'rule_disabled',
          },
        ],
  )
  return [...held, ...everywhere]
}
