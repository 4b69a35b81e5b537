import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Place, ReachingRule } from './place.js'

/**
 * Determines what no write may touch, whoever sends it (MCP_PROTECTED): certain labels, and the workloads that have one
 * of them.
 */
export interface Shield {
  /** Returns true if the label is protected. */
  readonly has: (label: string) => boolean
  /** Returns true if a label of this key and value is, or would be, protected. */
  readonly isNamed: (key: unknown, value: unknown) => boolean
  /**
   * Determines whether rules of a rule set with these scopes reach existing protected workloads. A rule is outside if
   * it does, or if that cannot be decided.
   */
  readonly placeRules: (
    rules: readonly ReachingRule[],
    scopes: readonly (readonly ScopeEntry[])[],
  ) => Promise<readonly Place[]>
  /** Returns those of the given labels that at least one protected workload has. */
  readonly findBorne: (labels: readonly string[]) => Promise<readonly string[]>
}
