import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Place, ReachingRule } from './place.js'

/** What no write may touch, whoever sends it (MCP_PROTECTED): labels, and the workloads that have one of them. */
export interface Shield {
  /** Returns true if the label is protected. */
  readonly has: (label: string) => boolean
  /** Returns true if a label of this key and value is, or would be, protected. */
  readonly isNamed: (key: unknown, value: unknown) => boolean
  /**
   * Places the rules of a rule set with these scopes by the protected workloads that exist: a rule is outside if it
   * reaches one, or if that cannot be decided.
   */
  readonly placeRules: (
    rules: readonly ReachingRule[],
    scopes: readonly (readonly ScopeEntry[])[],
  ) => Promise<readonly Place[]>
  /** Returns the labels, of these, that protected workloads have. */
  readonly findBorne: (labels: readonly string[]) => Promise<readonly string[]>
}
