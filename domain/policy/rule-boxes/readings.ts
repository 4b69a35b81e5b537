import type { Reason } from '../three-valued.js'

/**
 * Questions about the meaning of rules that no source answers (P65, P107). Each has two possible answers. Rules are
 * evaluated with both of them, and a conclusion must hold in either case.
 */
export type Ambiguity =
  /** Whether excluding a label also excludes the workloads that have no label with its key. By default, it does not. */
  | 'unlabelled'
  /** Whether an excluded label next to the entry "all workloads" excludes any workloads. By default, it does not. */
  | 'all_but'
  /**
   * Whether a label group without members matches no workload (the default), or is ignored as if the rule had no such
   * condition.
   */
  | 'empty_group'
  /** Whether a rule set without scopes applies nowhere or everywhere. By default, it applies nowhere. */
  | 'no_scope'
  /** Whether a rule for the corporate network also reaches hosts off this network. By default, it does not. */
  | 'network'

/**
 * For each question, the reason that an undecided answer gives, and the number of the fact in docs/pce-facts.md that
 * describes what is not known.
 */
export const UNSETTLED: Readonly<Record<Ambiguity, { reason: Reason; fact: string }>> = {
  unlabelled: { reason: 'label', fact: 'P65' },
  all_but: { reason: 'exclusion', fact: 'P65' },
  empty_group: { reason: 'label_group', fact: 'P65' },
  no_scope: { reason: 'scope', fact: 'P65' },
  network: { reason: 'network', fact: 'P107' },
}

/** One way to read rules: the set of questions whose answer is taken to be the opposite of the default. */
export type Reading = ReadonlySet<Ambiguity>

/** An end of a connection. A rule decides about a connection only at the ends to which the PCE sends the rule. */
export type WrittenEnd = 'src' | 'dst'
