import type { PceEvent } from '../../schemas/pce/event.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { VulnerabilityReport } from '../../schemas/pce/vulnerability.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { TrafficExposure } from './exposure.js'

/** What is assessed: everything with the labels that were given, or the whole estate. */
export interface Assessment {
  app: Label | null
  env: Label | null
  window: TrafficWindow
}

export interface AssessedWorkload {
  href: string
  name: string
  managed: boolean
  online: boolean
  /** Null for unmanaged workloads, whose mode means nothing. */
  mode: string | null
  reportsFlows: boolean
  labels: Readonly<Record<string, string>>
  /** Its app and env label, in this order; null unless it has both. */
  application: readonly [app: Label, env: Label] | null
  addresses: readonly string[]
}

export interface EventLog {
  /** Inside the window, newest first, at most MOST_EVENTS. */
  events: readonly PceEvent[]
  /** There are more than were read. */
  more: boolean
  /** Syslog destinations that receive them; null where the PCE refused to say. */
  destinations: { all: number; remote: number } | null
  /** How long the PCE keeps them; null where it refused to say. */
  retentionDays: number | null
}

export interface Loaded {
  workloads: readonly AssessedWorkload[]
  /** The policy in force, with the deny rules of every rule set. */
  policy: PolicySnapshot
  /** Draft rule sets: what is prepared but not in force yet. */
  drafts: readonly RuleSet[]
  ipLists: readonly IpList[]
  events: EventLog
  scans: readonly VulnerabilityReport[]
  traffic: TrafficExposure
}
export type SourceName = keyof Loaded

/** One of the facts, or why it could not be read. */
export type Source<T> = { value: T } | { unavailable: string }
export interface ComplianceFacts {
  assessment: Assessment
  sources: { readonly [K in SourceName]?: Source<Loaded[K]> }
}

/** Most events that are read. */
export const MOST_EVENTS = 1_000

/**
 * Why nothing can be said about the labels that were given: no workload that could be read has them, and neither has any traffic.
 * What the PCE does as a whole, such as keeping events, then says nothing about them. Null when there is something to judge.
 */
export function whyNothingKnown(
  { app, env }: Assessment,
  { workloads, traffic }: ComplianceFacts['sources'],
): string | null {
  const named = [app, env].flatMap((label) => (label === null ? [] : `${label.key}=${label.value}`))
  const rows = traffic !== undefined && 'value' in traffic ? traffic.value.rows : 0
  const known = workloads !== undefined && 'value' in workloads ? workloads.value.length : null
  if (named.length === 0 || rows > 0 || (known !== null && known > 0)) return null
  const machines =
    known === null
      ? 'the workloads could not be read'
      : `no workload has ${named.length > 1 ? 'these labels' : 'this label'}`
  return `Nothing is known about ${named.join(' ')}: ${machines}, and there is no traffic in the window.`
}
