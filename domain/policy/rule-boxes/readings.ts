/**
 * The questions about the PCE that no source answers (P65). Rules are read in both possible ways, and a judgement must
 * hold in each of them.
 */
export type Ambiguity =
  /** Whether excluding a label also excludes the workloads that have no label of its key. By default, it does not. */
  | 'unlabelled'
  /** Whether an exclusion beside all workloads takes any of them away. By default, it does not. */
  | 'all_but'
  /** Whether a label group without members selects nobody or is no condition at all. By default, it selects nobody. */
  | 'empty_group'
  /** Whether a rule set without scopes applies nowhere or everywhere. By default, it applies nowhere. */
  | 'no_scope'

/** One way to read rules: the questions that are answered in the second way instead of the default one. */
export type Reading = ReadonlySet<Ambiguity>

/** An end of a connection. A rule decides about a connection only at the ends for which it is written. */
export type WrittenEnd = 'src' | 'dst'
