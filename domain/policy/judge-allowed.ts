import { mayBeAllowedByDefault, type FlowEnd } from '../traffic/flow-ends.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import { matchRules, type End, type PlacedRule, type RuleMatch } from './match-rules.js'
import { anyOf, both, settle, unknown, type Answer } from './three-valued.js'

/** A connection that the PCE calls allowed. */
export interface AllowedFlow {
  source: FlowEnd
  destination: FlowEnd
  /** Enforcement modes of the ends; null where there is no VEN, or the mode is not known. */
  sourceMode: string | null
  destinationMode: string | null
  port: number | null
  proto: number | null
}

/** Whether rules allow it: 'no' where it passes only because no deny rule matches. */
export type JudgeAllowed = (flow: AllowedFlow) => Answer

/**
 * Judges connections that the PCE calls allowed. In selective mode that may only mean that no deny rule matched (P52), so each
 * end in that mode must have an allow rule in the policy in force; a deny rule that matches proves one, or the connection would
 * not have been allowed. Without the policy (null), whatever depends on it is undecided.
 */
export function createAllowedJudge(policy: PolicySnapshot | null): JudgeAllowed {
  if (policy === null)
    return ({ sourceMode, destinationMode }) =>
      mayBeAllowedByDefault(sourceMode, destinationMode) ? unknown('unread_policy') : 'yes'
  const allows = compileByDestination(rulesInForce(policy, 'allow'), policy)
  const denies = compileByDestination(rulesInForce(policy, 'deny'), policy)
  return ({ source, destination, sourceMode, destinationMode, port, proto }) => {
    if (!mayBeAllowedByDefault(sourceMode, destinationMode)) return 'yes'
    const judgeAt = (end: 'atSource' | 'atDestination'): Answer => {
      const matches = (rules: typeof allows) =>
        anyOf(rules(destination).map((match) => match[end](source, port, proto)))
      const allowed = matches(allows)
      return allowed !== 'yes' && matches(denies) === 'yes' ? settle(allowed, 'yes') : allowed
    }
    return both(
      destinationMode === 'selective' ? judgeAt('atDestination') : 'yes',
      sourceMode === 'selective' ? judgeAt('atSource') : 'yes',
    )
  }
}

/**
 * Rules, matched against any number of destinations. Rules that name providers by label alone are prepared once per set of
 * labels, because an estate has few of these and many workloads; only the rest are prepared per destination.
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
    const labels = JSON.stringify(Object.entries(destination.labels).sort())
    const labelled = ofLabels.get(labels) ?? matchRules(byLabels, destination, policy)
    ofLabels.set(labels, labelled)
    return [labelled, single]
  }
}

/** Whether its providers depend on more than an end's labels. */
const namesSingleEnds = ({ providers, ...rule }: PlacedRule['rule']): boolean =>
  rule.all_ips_except_for_in_providers === true ||
  rule.use_workload_subnets?.includes('providers') === true ||
  providers.some(
    ({ label, label_group: group, actors }) => label === undefined && group === undefined && actors !== 'ams',
  )
