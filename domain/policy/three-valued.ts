/** Why a judgement about policy is undecided. The phrases finish the sentence "undecided because of …". */
export const UNDECIDED = {
  address: 'an unknown address',
  contradiction: 'rules and PCE decisions that contradict each other',
  domain_name: 'IP lists of domain names',
  empty_service: 'services without ports',
  encryption: 'rules for encrypted or authenticated connections',
  enforcement: 'an unknown enforcement mode',
  essential: 'protocols that VENs keep open',
  exclusion: 'exclusions from all workloads',
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
  pending: 'changes that are not provisioned',
  port: 'traffic without a port or protocol',
  process: 'rules for certain processes',
  resolution: 'labels that stand for something other than workloads',
  selector: 'selectors that are not supported',
  service: 'services that could not be read',
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

/** Undecided, and why: reasons in alphabetical order, each once. Equal ones are one object, so `===` compares answers. */
export interface Unknown {
  readonly unknown: readonly Reason[]
}

/** An answer that may be undecided. */
export type Answer = 'yes' | 'no' | Unknown

const interned = new Map<string, Unknown>()

export function unknown(...reasons: readonly Reason[]): Unknown {
  const sorted = [...new Set(reasons)].sort()
  const id = sorted.join(' ')
  const known = interned.get(id) ?? { unknown: sorted }
  interned.set(id, known)
  return known
}

/** `undecided because of …`: the end of a sentence about what is undecided; empty where nothing is. */
export const undecidedBecause = (answers: Iterable<Answer>): string => {
  const reasons = new Set([...answers].flatMap((answer) => (isUnknown(answer) ? answer.unknown : [])))
  return reasons.size === 0 ? '' : `undecided because of ${[...reasons].map((reason) => UNDECIDED[reason]).join(', ')}`
}

/** Reasons in words. That decisions do not tell counts only where nothing else is open. */
export const describeReasons = (reasons: readonly Reason[]): string => {
  const telling = reasons.filter((reason) => reason !== 'hidden')
  return (telling.length > 0 ? telling : reasons).map((reason) => UNDECIDED[reason]).join('; ')
}

export const isUnknown = (answer: Answer): answer is Unknown => typeof answer === 'object'

const merge = (a: Unknown, b: Unknown): Unknown => (a === b ? a : unknown(...a.unknown, ...b.unknown))

/** Whether both hold. What one of them already refuses needs no reason of the other. */
export function both(a: Answer, b: Answer): Answer {
  if (a === 'no' || b === 'no') return 'no'
  if (a === 'yes') return b
  return b === 'yes' ? a : merge(a, b)
}

export const not = (answer: Answer): Answer => (answer === 'yes' ? 'no' : answer === 'no' ? 'yes' : answer)

/** Whether any holds; none of no answers does. */
export function anyOf(answers: Iterable<Answer>): Answer {
  let found: Answer = 'no'
  for (const answer of answers) {
    if (answer === 'yes') return 'yes'
    if (answer !== 'no') found = found === 'no' ? answer : merge(found, answer)
  }
  return found
}

/** One question, two sources: what either knows; undecided where they contradict. */
export function settle(a: Answer, b: Answer): Answer {
  if (isUnknown(a)) return isUnknown(b) ? merge(a, b) : b
  return isUnknown(b) || a === b ? a : unknown('contradiction')
}

/** What holds today and with everything pending provisioned; undecided where the pending changes make the difference. */
export function always(active: Answer, draft: Answer): Answer {
  if (active === draft) return active
  return unknown('pending', ...[active, draft].flatMap((answer) => (isUnknown(answer) ? answer.unknown : [])))
}
