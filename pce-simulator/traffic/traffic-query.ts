import type { TrafficRows } from '../policy/run-traffic-query.js'
import type { Progress } from '../status/progress.js'

/** The rows whose draft decisions `update_rules` works out (P39). */
export interface RuleWindow {
  offset: number
  limit: number
}

export const ALL_ROWS: RuleWindow = { offset: 0, limit: Infinity }

/** An asynchronous traffic query as the world holds it; query-run.ts is how one works. */
export interface TrafficQuery {
  readonly href: string
  readonly isCompleted: boolean
  /** Waiting or running: the poller is told when to come back. */
  readonly isPending: boolean
  /** Throws while there is nothing to download, and when it has expired. */
  requireResult(): void
  /** One GET: the query moves on. */
  poll(): void
  /** A query that has ended stays as it ended. */
  cancel(): void
  /** The draft decisions will be those of the draft as it is now. */
  updateRules(progress: Progress, window: RuleWindow): void
  rows(): TrafficRows['rows']
  /** What a GET of its href answers. */
  describe(): Record<string, unknown>
}
