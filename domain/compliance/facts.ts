import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { PceEvent } from '../../schemas/pce/event.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { VulnerabilityReport } from '../../schemas/pce/vulnerability.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { quote } from '../text/escape-text.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { TrafficExposure } from './exposure.js'

/** What is assessed: all workloads with the given labels or, without labels, the whole organisation. */
export interface Assessment {
  app: Label | null
  env: Label | null
  window: TrafficWindow
}

export interface AssessedWorkload {
  href: string
  name: string
  managed: boolean
  /** True for a Kubernetes workload, which has no VEN that could be offline. */
  isKubernetes: boolean
  /** Whether the VEN is online; null if the PCE does not say. */
  online: boolean | null
  /**
   * The enforcement mode; `unknown` if the PCE does not say; null for unmanaged workloads, because the field has no
   * meaning for them.
   */
  mode: string | null
  /** The enforcement mode by which the workload's traffic is judged. */
  judgedMode: EndMode
  /** Whether the workload reports flows to the PCE; null if the PCE does not say. */
  reportsFlows: boolean | null
  labels: Readonly<Record<string, string>>
  /** The app and env labels of the workload; null unless it has both of them. */
  application: readonly [app: Label, env: Label] | null
  addresses: readonly string[]
}

export interface EventLog {
  /** The events inside the window, newest first, at most MOST_EVENTS. */
  events: readonly PceEvent[]
  /** True if the PCE has more events than were read. */
  more: boolean
  /** Number of syslog destinations that receive the events; null if the syslog destinations could not be read. */
  destinations: { all: number; remote: number } | null
  /** Number of days for which the PCE keeps events; null if the PCE does not say or the setting could not be read. */
  retentionDays: number | null
}

export interface Loaded {
  workloads: readonly AssessedWorkload[]
  /** The active policy with the deny rules of every rule set. */
  policy: PolicySnapshot
  /** The draft rule sets, which may contain a prepared isolation although they are not in force. */
  drafts: readonly RuleSet[]
  ipLists: readonly IpList[]
  events: EventLog
  scans: readonly VulnerabilityReport[]
  traffic: TrafficExposure
}
export type SourceName = keyof Loaded

/** A fact that was read, or the reason why it could not be read. `partly` says which parts of it could not be read. */
export type Source<T> = { value: T; partly?: string } | { unavailable: string }
export interface ComplianceFacts {
  assessment: Assessment
  sources: { readonly [K in SourceName]?: Source<Loaded[K]> }
}

/** Maximum number of events that are read. */
export const MOST_EVENTS = 1_000

/**
 * Returns the reason if nothing is known about the given labels, because no workload has them and no traffic was seen.
 * Facts about the PCE as a whole, such as its event log, would then be misleading evidence. Returns null if there is
 * something to assess.
 */
export function whyNothingKnown(
  { app, env }: Assessment,
  { workloads, traffic }: ComplianceFacts['sources'],
): string | null {
  const named = [app, env].flatMap((label) => (label === null ? [] : quote(`${label.key}=${label.value}`)))
  const isJudged = traffic !== undefined && 'value' in traffic
  const rows = isJudged ? traffic.value.rows : 0
  const known = workloads !== undefined && 'value' in workloads ? workloads.value.length : null
  const isPartial = workloads !== undefined && 'value' in workloads && workloads.partly !== undefined
  if (named.length === 0 || rows > 0 || (known !== null && known > 0)) return null
  const machines =
    known === null
      ? 'the workloads could not be read'
      : `no workload ${isPartial ? 'that could be read ' : ''}has ${named.length > 1 ? 'these labels' : 'this label'}`
  const flows = isJudged ? 'there is no traffic in the window' : 'the traffic could not be judged'
  return `Nothing is known about ${named.join(' and ')}: ${machines}, and ${flows}.`
}
