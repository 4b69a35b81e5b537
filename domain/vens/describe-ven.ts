import type { Ven } from '../../schemas/pce/ven.js'

/** The worst of its conditions (P103). */
export type VenHealth = 'healthy' | 'warning' | 'error'

/** Something that the PCE says is wrong with a VEN. */
export interface VenCondition {
  /** The PCE's token. */
  condition: string
  /** In words. */
  means: string
  severity: VenHealth
  /** When it was first told of; null where the PCE does not say. */
  since: string | null
}

/** The PCE filters by the first four; others are types of events, and of health messages of older releases (P103). */
const MEANINGS: Readonly<Record<string, string>> = {
  'agent.missed_heartbeats': 'no heartbeats arrive from it',
  'agent.missing_heartbeats_after_upgrade': 'no heartbeats have arrived since its upgrade',
  'agent.upgrade_time_out': 'its upgrade did not finish in time',
  'agent.clone_detected': 'another machine reports with its identity: a clone',
  'agent.tampering': 'the firewall of the host was changed behind it',
  'agent.suspend': 'it was suspended',
  'agent.goodbye': 'it said goodbye: it was stopped, or its host shut down',
  'agent.service_not_available': 'one of its services does not run',
  'agent.refresh_policy': 'it could not fetch or apply a policy',
  security_policy_refresh_failure: 'it could not fetch or apply a policy',
}

/** Conditions that the PCE is documented to filter by. */
export const KNOWN_CONDITIONS = Object.keys(MEANINGS).slice(0, 4)

/** A token of the PCE in words; one that nobody documents is spelt out. */
export const meaningOf = (condition: string): string =>
  MEANINGS[condition] ?? condition.replace(/^agent\./, '').replaceAll('_', ' ')

/** What the PCE says is wrong with a VEN, in its order. */
export const conditionsOf = ({ conditions }: Pick<Ven, 'conditions'>): VenCondition[] =>
  (conditions ?? []).map(({ first_reported_timestamp: first, latest_event: event }) => {
    const condition = event?.notification_type ?? 'unknown'
    const severity = event?.severity === 'err' ? 'error' : 'warning'
    return { condition, means: meaningOf(condition), severity, since: first ?? event?.timestamp ?? null }
  })

export function healthOf(conditions: readonly VenCondition[]): VenHealth {
  if (conditions.some(({ severity }) => severity === 'error')) return 'error'
  return conditions.length > 0 ? 'warning' : 'healthy'
}

/** What the PCE says of the workload of a VEN; null where it says nothing. */
export interface VenWork {
  workload: string | null
  mode: string | null
  online: boolean | null
  /** `applied`, `syncing`, `staged` … (P105). */
  sync: string | null
}

/** A VEN of a Kubernetes node has several workloads, whose host is the first. */
export function workOf({ workloads }: Pick<Ven, 'workloads'>): VenWork {
  const [first] = workloads ?? []
  return {
    workload: first?.href ?? null,
    mode: first?.enforcement_mode ?? null,
    online: first?.online ?? null,
    sync: first?.security_policy_sync_state ?? null,
  }
}

/** The name that people know it by. */
export const nameOfVen = ({ name, hostname, href }: Pick<Ven, 'name' | 'hostname' | 'href'>): string =>
  name || hostname || href

/** Releases and their builds by their numbers: `24.5.0-72` before `25.2.9-1` before `25.2.10-101`. */
export const compareReleases = new Intl.Collator('en', { numeric: true }).compare
