import { ToolError } from '../../../schemas/errors.js'
import { applicationId, type Application } from '../flows/applications.js'
import type { LabelIndex } from '../load-labels.js'
import { isSameApplication } from './collect-peers.js'
import type { Remote } from './compare-existing.js'
import type { Discovery, InboundFlow } from './discover-flows.js'

export type Coverage = 'already_allowed' | 'newly_allowed'

/** An application that sends to the one at hand. */
export interface FoundRemote {
  remote: Application
  /** Allowed: every flow of it is. */
  coverage: Coverage
  /** Some flow is allowed, but maybe only because no deny rule matches it yet. */
  allowedByDefaultPossible: boolean
}

/** The applications among the sources, in the order of app, then env. */
export function findRemotes(flows: Iterable<InboundFlow>, own: Application): FoundRemote[] {
  const found = new Map<string, FoundRemote>()
  for (const { application: remote, decision, destination, hasDraftRules } of flows) {
    if (remote === null || isSameApplication(remote, own)) continue
    const key = applicationId(remote)
    const known = found.get(key) ?? { remote, coverage: 'already_allowed', allowedByDefaultPossible: false }
    if (decision !== 'allowed') known.coverage = 'newly_allowed'
    else if (destination === 'selective' && !hasDraftRules) known.allowedByDefaultPossible = true
    found.set(key, known)
  }
  // By code unit, and the separator sorts before anything a value holds: app first, then env.
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, remote]) => remote)
}

/** The labels of a source. Throws label_not_found where the label list has none. */
export function labelsOf({ app, env }: Application, labels: LabelIndex): Remote {
  const [appLabel, envLabel] = [labels.find('app', app), labels.find('env', env)]
  if (appLabel !== undefined && envLabel !== undefined) return { app: appLabel, env: envLabel }
  const label = appLabel === undefined ? `app=${app}` : `env=${env}`
  const text = `A source bears the label ${label}, which is not in the label list. Nothing was written.`
  throw new ToolError('label_not_found', text, { label }, { hint: 'Labels may be changing; call again.' })
}

/** Outbound connections that no rule allows today, to anybody but the application itself. */
export function countNotAllowed({ outbound }: Pick<Discovery, 'outbound'>, own: Application): number {
  let sum = 0
  for (const { application, decision, connections } of outbound) {
    const isOwn = application !== null && isSameApplication(application, own)
    if (!isOwn && decision !== 'allowed') sum += connections
  }
  return sum
}
