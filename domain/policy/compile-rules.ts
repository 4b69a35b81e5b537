import type { PolicySnapshot } from './load-snapshot.js'
import { matchRules, type End, type PlacedRule, type RuleMatch } from './match-rules.js'

/**
 * Prepares rules for matching against many destinations. There are many workloads but few distinct sets of labels.
 * Rules whose providers are only labels are therefore prepared once for all destinations with the same labels and
 * network; only the other rules are prepared for each destination separately.
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
    const labels = labelsOf(destination)
    const labelled = ofLabels.get(labels) ?? matchRules(byLabels, destination, policy)
    ofLabels.set(labels, labelled)
    return [labelled, single]
  }
}

const known = new WeakMap<End, string>()

/** Returns a text that is the same for all ends with the same labels and network. */
function labelsOf(end: End): string {
  const text = known.get(end) ?? JSON.stringify([Object.entries(end.labels).sort(), end.offNetwork ?? 'no'])
  known.set(end, text)
  return text
}

/** Returns true if a workload's labels are not enough to decide whether the providers of a rule include it. */
const namesSingleEnds = ({ providers, ...rule }: PlacedRule['rule']): boolean =>
  rule.all_ips_except_for_in_providers === true ||
  rule.use_workload_subnets?.includes('providers') === true ||
  providers.some(
    ({ label, label_group: group, actors }) => label === undefined && group === undefined && actors !== 'ams',
  )
