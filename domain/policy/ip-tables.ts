import type { Actor, IpTablesRule, RuleSet } from '../../schemas/pce/rule-set.js'
import { isInForce, type PolicySnapshot } from './load-snapshot.js'
import { isWrittenTo, type End } from './match-rules.js'
import { countOf } from '../text/describe-numbers.js'
import { anyOf, assumedBy, unknown, type Answer } from './three-valued.js'

/**
 * Creates a function that returns whether iptables rules are in force at one end of a connection. The answer is never
 * 'yes', because iptables rules can allow or block anything: if there are any, everything at this end is undecided
 * (P19).
 */
export function createIpTablesSearch(policy: PolicySnapshot): (end: End) => Answer {
  const ruleSets = policy.ruleSets.filter((one) => isInForce(one) && (one.ip_tables_rules ?? []).some(isInForce))
  if (ruleSets.length === 0) return () => 'no'
  const known = new WeakMap<End, Answer>()
  return (end) => {
    const answer =
      known.get(end) ??
      (ruleSets.every((ruleSet) => hasIpTablesFor(ruleSet, end, policy) === 'no') ? 'no' : unknown('iptables'))
    known.set(end, answer)
    return answer
  }
}

/**
 * Returns whether a rule set has iptables rules that apply to this end of a connection. What they do is never
 * determined.
 */
export const hasIpTablesFor = (ruleSet: RuleSet, end: End, policy: PolicySnapshot): Answer =>
  anyOf(answersOf(ruleSet, end, policy))

/** Counts the iptables rules that are, or may be, in force at one end of a connection. */
export const countIpTables = (policy: PolicySnapshot, end: End): number =>
  policy.ruleSets.flatMap((ruleSet) => answersOf(ruleSet, end, policy)).filter((answer) => answer !== 'no').length

/**
 * Returns a note that says how many iptables rules were not taken into account. `count` is null if the policy could not
 * be read.
 */
export function tellIpTables(count: number | null): string[] {
  if (count === null)
    return ['Whether rules in the words of iptables apply is not known: the policy in force could not be read.']
  if (count === 0) return []
  return [`${countOf(count, 'rule')} in the words of iptables ${count === 1 ? 'is' : 'are'} not judged.`]
}

/**
 * Returns the unconfirmed facts about the PCE on which a count of iptables rules depends; none if the count is zero or
 * null (not known).
 */
export const assumedOfIpTables = (count: number | null): string[] =>
  count === null || count === 0 ? [] : assumedBy([unknown('iptables')])

const answersOf = (ruleSet: RuleSet, end: End, policy: PolicySnapshot): Answer[] =>
  isInForce(ruleSet)
    ? (ruleSet.ip_tables_rules ?? [])
        .filter(isInForce)
        .map((rule) => isWrittenTo(place(rule, ruleSet), 'providers', end, policy))
    : []

const place = ({ actors }: IpTablesRule, { scopes }: RuleSet) => ({
  scopes,
  rule: { providers: actors as Actor[], consumers: [], ingress_services: [] },
})
