import type { RuleEvidence, RulesEvidence, SideEvidence, TrafficEvidence } from '../../domain/history/observe-draft.js'
import { OBSERVED_DAYS, type ObservedPair } from '../../domain/drafts/observe-change.js'
import type { CutFate } from '../../domain/policy/judge-cut.js'
import type { RuleType } from '../../domain/policy/rule-type.js'
import type { ShownEvidence, ShownTraffic } from '../../schemas/approvals.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { clipText } from '../../domain/text/escape-text.js'

/** What observed traffic shows about a pending change, the most urgent first. */
export const EVIDENCE = [
  'depends',
  'both',
  'undecided',
  'asked_for',
  'none',
  'no_rules',
  'not_judged',
  'not_known',
] as const
export type Evidence = (typeof EVIDENCE)[number]

/** Explanations of the words for evidence, as answers use them. */
export const EVIDENCE_MEANINGS: Readonly<Record<Evidence, string>> = {
  depends: 'observed traffic depends on what it takes away',
  both: 'observed traffic depends on what it takes away, and other traffic asked for what it lets pass',
  undecided: 'observed traffic may depend on it',
  asked_for: 'observed traffic asked for what it lets pass',
  none: `no evidence in ${OBSERVED_DAYS} days`,
  no_rules: 'no rule depends on it',
  not_judged: 'changes of this type are not followed to traffic',
  not_known: 'not all traffic was read, and what was read says nothing of it',
}

/**
 * The effects of a change on a pair of source and destination, for each side of the change: what it takes away and what
 * it allows.
 */
const TAKING: Partial<Record<CutFate, string>> = {
  cut: 'would be cut',
  cut_once_enforced: 'would be cut once their workloads enforce policy',
  cut_if_alone: 'would be cut if it is provisioned without the other pending changes',
}
const GIVING: Partial<Record<CutFate, string>> = {
  cut: 'would be stopped without it',
  cut_once_enforced: 'would be stopped without it once their workloads enforce policy',
  cut_if_alone: 'would be stopped without it if the other pending changes were not there',
}

/**
 * Default maximum number of pairs shown for each side of a change (what it takes away and what it allows), and maximum
 * number of ports shown for each pair.
 */
const MOST_PAIRS = 3
const MOST_PORTS = 3

export interface EvidenceShown {
  evidence: Evidence
  says: string
  depends?: ShownTraffic[]
  asked_for?: ShownTraffic[]
  pairs_total?: number
}

/** A changed rule of a rule set with its evidence. */
export interface RuleShown extends EvidenceShown {
  href: string
  rule_type: RuleType
  change: RuleEvidence['change']
  position: number
  rule: string
  becomes?: string
  description?: string
  by_rule_set?: true
}

/**
 * The numbers of rules in changed rule sets. `evidence` counts the changed ones by what observed traffic says about
 * them.
 */
export interface RuleCounts {
  added: number
  changed: number
  removed: number
  unchanged: number
  reordered?: number
  iptables_not_judged?: number
  /** Number of changed rules that the caller did not ask about. */
  others?: number
  evidence: Partial<Record<Evidence, number>>
}

/**
 * The order in which the changed rules of a rule set are listed. Those that a person should look at first come first.
 */
const RULES_ORDER: readonly Evidence[] = [
  'depends',
  'both',
  'undecided',
  'none',
  'not_known',
  'not_judged',
  'asked_for',
  'no_rules',
]
/** Maximum number of characters of the description of a rule. */
const LONGEST_DESCRIPTION = 120

/**
 * Shows what observed traffic reveals about a change: one word, one sentence and the busiest pairs.
 *
 * @param isCut true if not all traffic was read, so that counts are lower bounds and a lack of traffic proves nothing.
 * @param most maximum number of pairs for each side of the change: what it takes away and what it allows.
 */
export function showEvidence(found: TrafficEvidence, isCut: boolean, most = MOST_PAIRS): EvidenceShown {
  if (found.kind !== 'judged')
    return {
      evidence: found.kind,
      says: sentence(
        found.why === undefined ? EVIDENCE_MEANINGS[found.kind] : `${WITH_REASON[found.kind]}: ${found.why}`,
      ),
    }
  const { taking, giving, undecided } = found
  const [taken, given] = [tell(taking, TAKING), tell(giving, GIVING)]
  const open = Math.max(taking.connections.undecided, giving.connections.undecided)
  const evidence: Evidence =
    taken.length > 0
      ? given.length > 0
        ? 'both'
        : 'depends'
      : open > 0
        ? 'undecided'
        : given.length > 0
          ? 'asked_for'
          : isCut
            ? 'not_known'
            : 'none'
  const parts = [
    ...taken,
    ...given,
    ...(open > 0 ? [`of ${countOf(open, 'connection')} it is not known (${undecided})`] : []),
  ]
  const depends = pairsOf(taking, TAKING, most)
  const asked = pairsOf(giving, GIVING, most)
  const total = [...taking.pairs.filter(isTold(TAKING)), ...giving.pairs.filter(isTold(GIVING))].length
  return {
    evidence,
    says:
      parts.length === 0
        ? sentence(EVIDENCE_MEANINGS[evidence])
        : sentence(`in ${OBSERVED_DAYS} days ${isCut ? 'at least ' : ''}${parts.join('; ')}`),
    ...(depends.length > 0 && { depends }),
    ...(asked.length > 0 && { asked_for: asked }),
    ...(total > depends.length + asked.length && { pairs_total: total }),
  }
}

const WITH_REASON = { not_judged: 'not judged', no_rules: 'it concerns no traffic' } as const

/** Shows the changed rules of a rule set, each with its evidence: those that cut traffic or have no evidence first. */
export function showRules({ changed }: RulesEvidence, isCut: boolean, most: number): RuleShown[] {
  const shown = changed.map(
    ({ href, type, change, rule, line, newLine, position, isThroughSet, evidence }): RuleShown => {
      const { description } = rule
      return {
        href,
        rule_type: type,
        change,
        position,
        rule: line,
        ...(newLine !== undefined && { becomes: newLine }),
        ...(description != null && description !== '' && { description: clipText(description, LONGEST_DESCRIPTION) }),
        ...(isThroughSet && { by_rule_set: true }),
        ...showEvidence(evidence, isCut, most),
      }
    },
  )
  return shown.toSorted((a, b) => rankOfRule(a) - rankOfRule(b))
}

export const rankOfRule = ({ evidence }: Pick<EvidenceShown, 'evidence'>): number => RULES_ORDER.indexOf(evidence)

/** Counts the rules of a changed rule set. */
export function countRules({ changed, ...numbers }: RulesEvidence, isCut: boolean): RuleCounts {
  const { unchanged, reordered, ipTables, others } = numbers
  const deeds = { added: 0, changed: 0, removed: 0 }
  const evidence: RuleCounts['evidence'] = {}
  for (const rule of changed) {
    deeds[rule.change]++
    const word = showEvidence(rule.evidence, isCut, 0).evidence
    evidence[word] = (evidence[word] ?? 0) + 1
  }
  return {
    ...deeds,
    unchanged,
    ...(reordered > 0 && { reordered }),
    ...(ipTables > 0 && { iptables_not_judged: ipTables }),
    ...(others > 0 && { others }),
    evidence,
  }
}

/** Adds up the counts of several rule sets; returns null if the list is empty. */
export function sumRules(all: readonly RuleCounts[]): RuleCounts | null {
  if (all.length === 0) return null
  const add = <T extends object>(counts: readonly T[]) => {
    const sums: Record<string, number> = {}
    for (const [name, count] of counts.flatMap((one) => Object.entries(one) as [string, number][]))
      sums[name] = (sums[name] ?? 0) + count
    return sums
  }
  const numbers = add(all.map(({ evidence: _evidence, ...rest }) => rest))
  return { ...numbers, evidence: add(all.map(({ evidence }) => evidence)) } as RuleCounts
}

/**
 * Returns a sentence on what observed traffic says about the changed rules; an empty one if at most one rule changes.
 */
export function describeRules(counts: RuleCounts | null): string {
  if (counts === null) return ''
  const { added, changed, removed, reordered = 0, iptables_not_judged: ipTables = 0, evidence } = counts
  const deeds = Object.entries({ added, changed, removed }).filter(([, count]) => count > 0)
  const total = added + changed + removed
  const words = RULES_ORDER.filter((word) => evidence[word] !== undefined)
  const parts = words.map((word) => `${evidence[word]}: ${RULE_MEANINGS[word] ?? EVIDENCE_MEANINGS[word]}`)
  return [
    total > 1
      ? `Of ${countOf(total, 'rule')} (${deeds.map(([deed, count]) => `${count} ${deed}`).join(', ')}): ${parts.join('; ')}.`
      : '',
    reordered > 0 ? `${countOf(reordered, 'rule')} only moved to another place, on which no traffic depends.` : '',
    ipTables > 0
      ? `${countOf(ipTables, 'changed rule')} in the words of iptables ${ipTables === 1 ? 'was' : 'were'} not judged.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}
const RULE_MEANINGS: Partial<Record<Evidence, string>> = {
  no_rules: 'concern no traffic',
  not_judged: 'not judged',
}

/** The sentence that an approval page shows for one change if no evidence is known for any change. */
export const NOT_KNOWN = 'Not known, as said above.'

/** Shows the evidence of a change on an approval page. */
export function showOnPage(shown: Omit<EvidenceShown, 'evidence'>): ShownEvidence {
  const { says, depends = [], asked_for: asked = [], pairs_total: total } = shown
  const traffic = [...depends, ...asked]
  return {
    says,
    ...(traffic.length > 0 && { traffic }),
    ...(total !== undefined && { traffic_total: total }),
  }
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const isTold =
  (words: Partial<Record<CutFate, string>>) =>
  ({ effect }: ObservedPair): boolean =>
    words[effect] !== undefined

function tell({ connections, pairs }: SideEvidence, words: Partial<Record<CutFate, string>>): string[] {
  return (Object.entries(words) as [CutFate, string][])
    .filter(([fate]) => connections[fate] > 0)
    .map(([fate, text]) => {
      const own = pairs.filter(({ effect }) => effect === fate).length
      return `${countOf(connections[fate], 'connection')} of ${countOf(own, 'pair')} ${text}`
    })
}

const pairsOf = ({ pairs }: SideEvidence, words: Partial<Record<CutFate, string>>, most: number): ShownTraffic[] =>
  pairs
    .filter(isTold(words))
    .slice(0, most)
    .map(({ source, destination, ports, connections, effect, lastSeen }) => ({
      source,
      destination,
      ports: ports.slice(0, MOST_PORTS),
      connections,
      effect: words[effect] as string,
      ...(lastSeen !== null && { last_seen: lastSeen.slice(0, 10) }),
    }))
