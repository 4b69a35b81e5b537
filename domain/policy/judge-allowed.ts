import type { FlowEnd } from '../traffic/flow-ends.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import { matchRules, type End, type PlacedRule, type RuleMatch } from './match-rules.js'
import { isModeUntold, mayPassByDefault, passesByDefault, stops } from './mode-effects.js'
import { anyOf, both, settle, unknown, type Answer } from './three-valued.js'

/** A connection that the PCE reports as allowed. */
export interface AllowedFlow {
  source: FlowEnd
  destination: FlowEnd
  /** The enforcement modes of both ends: null for an end without a VEN; a text that is no mode if the mode is not known. */
  sourceMode: string | null
  destinationMode: string | null
  port: number | null
  proto: number | null
}

/** Tells whether rules allow the connection: 'no' if it passes only because no deny rule matches. */
export type JudgeAllowed = (flow: AllowedFlow) => Answer

/**
 * Creates the judge for connections that the PCE reports as allowed. In selective mode that may only mean that no deny
 * rule matched (P52), so the judge looks for an allow rule at each end in that mode. If a deny rule applies, there must
 * be an allow rule, or the connection would not have been allowed. An end whose mode is not known may be in that mode,
 * so its rows are undecided unless rules allow them anyway. If the policy is null, whatever depends on it is undecided.
 */
export function createAllowedJudge(policy: PolicySnapshot | null): JudgeAllowed {
  if (policy === null)
    return ({ sourceMode, destinationMode }) =>
      mayPassByDefault(sourceMode, destinationMode) ? unknown('unread_policy') : 'yes'
  const allows = compileByDestination(rulesInForce(policy, 'allow'), policy)
  const denies = compileByDestination(rulesInForce(policy, 'deny'), policy)
  return ({ source, destination, sourceMode, destinationMode, port, proto }) => {
    if (!mayPassByDefault(sourceMode, destinationMode)) return 'yes'
    const judgeAt = (end: 'atSource' | 'atDestination'): Answer => {
      const matches = (rules: typeof allows) =>
        anyOf(rules(destination).map((match) => match[end](source, port, proto)))
      const allowed = matches(allows)
      if (!passesByDefault(end === 'atSource' ? sourceMode : destinationMode)) return allowed
      const denied = both(matches(denies), stops('selective', end === 'atSource' ? 'outbound' : 'inbound', 'deny'))
      return allowed !== 'yes' && denied === 'yes' ? settle(allowed, 'yes') : allowed
    }
    const asks = (mode: string | null) => passesByDefault(mode) || isModeUntold(mode)
    const byRules = both(
      asks(destinationMode) ? judgeAt('atDestination') : 'yes',
      asks(sourceMode) ? judgeAt('atSource') : 'yes',
    )
    const isUntold = isModeUntold(sourceMode) || isModeUntold(destinationMode)
    return isUntold && byRules !== 'yes' ? anyOf([byRules, unknown('enforcement')]) : byRules
  }
}

/**
 * Prepares rules for matching against many destinations. Rules whose providers are only labels are prepared once per
 * set of labels and network, because an estate has few label sets and many workloads. Only the other rules are prepared per
 * destination.
 */
export function compileByDestination(rules: readonly PlacedRule[], policy: PolicySnapshot) {
  const byLabels = rules.filter(({ rule }) => !namesSingleEnds(rule))
  const bySingleEnds = rules.filter(({ rule }) => namesSingleEnds(rule))
  const ofLabels = new Map<string, RuleMatch>()
  const ofEnds = new Map<End, RuleMatch>()
  return (destination: End): RuleMatch[] => {
    const single = ofEnds.get(destination) ?? matchRules(bySingleEnds, destination, policy)
    ofEnds.set(destination, single)
    if (destination.workload === null) return [single]
    const labels = JSON.stringify([Object.entries(destination.labels).sort(), destination.offNetwork ?? 'no'])
    const labelled = ofLabels.get(labels) ?? matchRules(byLabels, destination, policy)
    ofLabels.set(labels, labelled)
    return [labelled, single]
  }
}

/** Returns true if the providers of a rule depend on more than the labels of an end. */
const namesSingleEnds = ({ providers, ...rule }: PlacedRule['rule']): boolean =>
  rule.all_ips_except_for_in_providers === true ||
  rule.use_workload_subnets?.includes('providers') === true ||
  providers.some(
    ({ label, label_group: group, actors }) => label === undefined && group === undefined && actors !== 'ams',
  )
