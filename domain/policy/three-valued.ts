/**
 * The reasons why an answer about the policy may be undecided. Each phrase completes the sentence "undecided because of
 * …".
 */
export const UNDECIDED = {
  address: 'an unknown address',
  contradiction: 'rules and PCE decisions that contradict each other',
  domain_name: 'IP lists of domain names',
  empty_service: 'services without ports',
  encryption: 'rules for encrypted or authenticated connections',
  enforcement: 'an unknown enforcement mode',
  essential: 'protocols that VENs keep open',
  exclusion: 'labels that a rule excludes',
  expiry: 'an end in the description that cannot be read',
  field: 'rule fields of a later release',
  firewall: 'firewall settings',
  hidden: 'PCE decisions that do not say which end made them',
  icmp_type: 'ICMP types',
  inverted: 'rules for all addresses but some',
  ip_list: 'IP lists that could not be read',
  iptables: 'rules in the words of iptables',
  label: 'labels that only some workloads may have',
  label_group: 'label groups that are empty or could not be read',
  network: 'rules for other networks',
  off_network: 'rules for the corporate network, at an end off it',
  pending: 'changes that are not provisioned',
  pod: 'addresses that may be those of Kubernetes workloads',
  port: 'traffic without a port or protocol',
  process: 'rules for certain processes',
  resolution: 'labels that stand for something other than workloads',
  scope: 'rule sets without scopes',
  selector: 'selectors that are not supported',
  selective_outbound: 'deny rules at sources in selective mode',
  service: 'services that could not be read',
  silent: 'VENs that may not enforce',
  size: 'rules that overlap in too many ways to compare them all',
  stateless: 'stateless rules',
  subnets: 'rules for the subnets of workloads',
  unexplained: 'PCE decisions that no rule explains',
  unread_policy: 'a policy that could not be read',
  unread_rules: 'deny rules that could not be read',
  user: 'rules for certain users',
  virtual_service: 'virtual services',
  workload: 'rules for single workloads',
} as const
export type Reason = keyof typeof UNDECIDED

/**
 * An undecided answer with its reasons, each once and in alphabetical order. Answers with the same reasons are the same
 * object, so they can be compared with `===`.
 */
export interface Unknown {
  readonly unknown: readonly Reason[]
}

/** An answer to a yes-or-no question that may be undecided. */
export type Answer = 'yes' | 'no' | Unknown

const interned = new Map<string, Unknown>()

export function unknown(...reasons: readonly Reason[]): Unknown {
  const sorted = [...new Set(reasons)].sort()
  const id = sorted.join(' ')
  const known = interned.get(id) ?? { unknown: sorted }
  interned.set(id, known)
  return known
}

/** For some reasons why an answer is undecided, the unconfirmed fact in docs/pce-facts.md behind the reason. */
const ASSUMED: Partial<Record<Reason, string>> = {
  exclusion: 'P65',
  iptables: 'P19',
  off_network: 'P107',
  pod: 'P106',
  selective_outbound: 'P51',
}

/** Returns the unconfirmed facts on which the given answers depend, each once and in alphabetical order. */
export const assumedBy = (answers: readonly Answer[]): string[] => {
  const facts = answers.flatMap((answer) => (isUnknown(answer) ? answer.unknown.map((reason) => ASSUMED[reason]) : []))
  return [...new Set(facts.filter((fact) => fact !== undefined))].sort()
}

/**
 * Returns the reasons of undecided answers as one string, each once and in a fixed order. The string is empty if
 * nothing is undecided.
 */
export const listReasons = (answers: Iterable<Answer>): string => {
  const reasons = new Set([...answers].flatMap((answer) => (isUnknown(answer) ? answer.unknown : [])))
  return [...reasons]
    .sort()
    .map((reason) => UNDECIDED[reason])
    .join(', ')
}

/**
 * Returns the phrase `undecided because of …`, with which a sentence can be completed, or an empty string if nothing is
 * undecided.
 */
export const undecidedBecause = (answers: Iterable<Answer>): string => {
  const reasons = listReasons(answers)
  return reasons === '' ? '' : `undecided because of ${reasons}`
}

/**
 * Describes the reasons why an answer is undecided. The reason "decisions that do not say which end made them" is
 * listed only if there is no other reason.
 */
export const describeReasons = (reasons: readonly Reason[]): string => {
  const telling = reasons.filter((reason) => reason !== 'hidden')
  return (telling.length > 0 ? telling : reasons).map((reason) => UNDECIDED[reason]).join('; ')
}

export const isUnknown = (answer: Answer): answer is Unknown => typeof answer === 'object'

const merge = (a: Unknown, b: Unknown): Unknown => (a === b ? a : unknown(...a.unknown, ...b.unknown))

/**
 * Combines two answers by a logical AND. The result is 'no' if either answer is 'no', even if the other one is
 * undecided; otherwise the reasons of both are kept.
 */
export function both(a: Answer, b: Answer): Answer {
  if (a === 'no' || b === 'no') return 'no'
  if (a === 'yes') return b
  return b === 'yes' ? a : merge(a, b)
}

export const not = (answer: Answer): Answer => (answer === 'yes' ? 'no' : answer === 'no' ? 'yes' : answer)

/** Combines all answers by a logical OR; the result is 'no' if there are none. */
export function anyOf(answers: Iterable<Answer>): Answer {
  let found: Answer = 'no'
  for (const answer of answers) {
    if (answer === 'yes') return 'yes'
    if (answer !== 'no') found = found === 'no' ? answer : merge(found, answer)
  }
  return found
}

/**
 * Combines two answers to the same question from different sources. A decided answer beats an undecided one, and
 * contradicting answers become undecided.
 */
export function settle(a: Answer, b: Answer): Answer {
  if (isUnknown(a)) return isUnknown(b) ? merge(a, b) : b
  return isUnknown(b) || a === b ? a : unknown('contradiction')
}

/**
 * Combines the answers for the active policy and for the draft. If they differ, the answer is undecided because of
 * pending changes.
 */
export function always(active: Answer, draft: Answer): Answer {
  if (active === draft) return active
  return unknown('pending', ...[active, draft].flatMap((answer) => (isUnknown(answer) ? answer.unknown : [])))
}
