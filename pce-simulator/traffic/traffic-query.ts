import type { TrafficRows } from '../policy/run-traffic-query.js'
import type { Progress } from '../status/progress.js'

/** The range of rows for which `update_rules` computes draft decisions (P39). */
export interface RuleWindow {
  offset: number
  limit: number
}

export const ALL_ROWS: RuleWindow = { offset: 0, limit: Infinity }

/** An asynchronous traffic query. It is implemented in query-run.ts. */
export interface TrafficQuery {
  readonly href: string
  readonly isCompleted: boolean
  /** True while the query is waiting or running, so that the caller must poll again. */
  readonly isPending: boolean
  /** Checks that the result can be downloaded. Throws if it is not ready yet or no longer available. */
  requireResult(): void
  /** Advances the progress of the query. It is called once for each GET. */
  poll(): void
  /** Cancels the query, unless it has already ended. */
  cancel(): void
  /** Computes the draft decisions for the query's rows from the current draft policy. */
  updateRules(progress: Progress, window: RuleWindow): void
  rows(): TrafficRows['rows']
  /** Returns the query in the form in which a GET shows it. */
  describe(): Record<string, unknown>
}
