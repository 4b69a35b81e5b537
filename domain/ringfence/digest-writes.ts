import { createHash } from 'node:crypto'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'
import type { ResolvedService } from '../drafts/resolve-services.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { Prepared } from './prepare-ringfence.js'
import type { BatchOutcome } from './run-batch.js'
import { bodyOf } from './write-ringfence.js'

/**
 * Returns the SHA-256 digest, in lower-case hex, of planned ringfences (D75). It covers the traffic window and, for
 * each application, either the reason why nothing is written, or the planned writes with the contents of the services
 * in their rules and the sources that are left out. Connection counts, and any order that depends on them, are ignored,
 * because they change by themselves.
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
  prepared.rules.map(({ collection, body, services }) => [collection, body, services.map(contentOf)]),
  prepared.plan.remotes.flatMap(({ app, env, rule }) => (rule === 'excluded' ? [[app, env]] : [])),
]

/**
 * Returns the name and the entries of a service object. Returns null for ports written directly into a rule, because
 * these are part of the rule's body.
 */
const contentOf = (resolved: ResolvedService): unknown =>
  'ports' in resolved ? null : [resolved.service.name, SERVICE_LISTS.map((list) => resolved.service[list] ?? null)]
