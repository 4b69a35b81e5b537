import type { Actor, IpTablesRule, RuleSet } from '../../schemas/pce/rule-set.js'
import { isInForce, type PolicySnapshot } from './load-snapshot.js'
import { isWrittenTo, type End } from './match-rules.js'
import { anyOf, type Answer } from './three-valued.js'

/**
 * Tells whether a rule set has rules in the words of iptables that are in force at an end. What these do to a connection
 * is never judged.
 */
export const hasIpTablesFor = (ruleSet: RuleSet, end: End, policy: PolicySnapshot): Answer =>
  !isInForce(ruleSet)
    ? 'no'
    : anyOf(
        (ruleSet.ip_tables_rules ?? [])
          .filter(isInForce)
          .map((rule) => isWrittenTo(place(rule, ruleSet), 'providers', end, policy)),
      )

const place = ({ actors }: IpTablesRule, { scopes }: RuleSet) => ({
  scopes,
  rule: { providers: actors as Actor[], consumers: [], ingress_services: [] },
})
