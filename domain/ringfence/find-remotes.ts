import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { applicationId, type Application } from '../traffic/applications.js'
import { forgetLabels, type LabelIndex } from '../inventory/load-labels.js'
import { isSameApplication } from './collect-peers.js'
import type { Remote } from './reach.js'
import type { InboundFlow } from './discover-flows.js'

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

/** Throws label_not_found where a label that the caller named is another one by now. */
export function refuseRenamed(pce: PceClient, application: readonly Label[], labels: LabelIndex): void {
  for (const { href, key, value } of application)
    if (labels.get(href)?.value !== value) throw renamed(pce, `${key}=${value}`)
}

/**
 * Throws label_not_found unless the labels that the rules will name are those that the sources bear: traffic names labels by
 * value, and a label renamed since the list was read would let another application in.
 */
export function refuseRenamedSources(pce: PceClient, flows: Iterable<InboundFlow>, labels: LabelIndex): void {
  for (const { application, source } of flows) {
    if (application === null) continue
    for (const [key, value] of [
      ['app', application.app],
      ['env', application.env],
    ] as const) {
      const label = labels.find(key, value)
      const href = source.labelHrefOf[key]
      if (label === undefined || (href !== undefined && href !== label.href)) throw renamed(pce, `${key}=${value}`)
    }
  }
}

function renamed(pce: PceClient, label: string): ToolError {
  // So that the next look at the labels is a fresh one.
  forgetLabels(pce)
  const text = `Labels changed meanwhile: ${label} is not the label it was. Nothing was written.`
  return new ToolError('label_not_found', text, { label }, { hint: 'Call again.' })
}

/** The labels of a source. Throws label_not_found where the label list has none. */
export function labelsOf({ app, env }: Application, labels: LabelIndex): Remote {
  const [appLabel, envLabel] = [labels.find('app', app), labels.find('env', env)]
  if (appLabel !== undefined && envLabel !== undefined) return { app: appLabel, env: envLabel }
  const label = appLabel === undefined ? `app=${app}` : `env=${env}`
  const text = `A source bears the label ${label}, which is not in the label list. Nothing was written.`
  throw new ToolError('label_not_found', text, { label }, { hint: 'Labels may be changing; call again.' })
}
