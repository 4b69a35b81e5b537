/** What no source defines, each read in two ways: a judgement has to hold in both. */
export type Ambiguity =
  /** Whether a workload without any label of a key is among those without one label of it (P65). */
  | 'unlabelled'
  /** Whether an exclusion beside all workloads takes any of them away. */
  | 'all_but'
  /** Whether a label group without members names nobody or is no condition. */
  | 'empty_group'
  /** Whether a rule set without scopes applies nowhere or everywhere. */
  | 'no_scope'

/** What is read in the second of its two ways. */
export type Reading = ReadonlySet<Ambiguity>

/** The end of a connection that a rule is written to: there it decides. */
export type WrittenEnd = 'src' | 'dst'
