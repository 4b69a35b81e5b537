import { createHash } from 'node:crypto'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { Prepared } from './prepare-ringfence.js'
import type { BatchOutcome } from './run-batch.js'
import { bodyOf } from './write-ringfence.js'

/**
 * A digest of planned ringfences, as lowercase hex SHA-256: the window of traffic they were planned from, and everything that each
 * application would have written and whom it leaves out, or why nothing (D75). Counts of connections are left out, because they move by themselves; so is
 * the order, which follows from them.
 */
export function digestWrites(window: TrafficWindow, planned: readonly BatchOutcome[]): string {
  const rows = planned
    .map((outcome) => JSON.stringify([outcome.app, outcome.env, outcome.status, tell(outcome)]))
    .sort()
  return createHash('sha256')
    .update(JSON.stringify([window.start, window.end, rows]))
    .digest('hex')
}

function tell(outcome: BatchOutcome): unknown {
  if (outcome.status === 'skipped') return outcome.reason
  return outcome.status === 'error' ? (outcome.error['error'] ?? null) : writesOf(outcome.done.prepared)
}

const writesOf = (prepared: Prepared) => [
  prepared.application.map(({ href }) => href),
  prepared.ruleSet?.href ?? null,
  bodyOf(prepared),
  prepared.rules.map(({ collection, body }) => [collection, body]),
  prepared.plan.remotes.flatMap(({ app, env, rule }) => (rule === 'excluded' ? [[app, env]] : [])),
]
