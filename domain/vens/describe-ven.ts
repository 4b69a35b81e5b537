import type { Ven } from '../../schemas/pce/ven.js'
import { countOf } from '../text/describe-numbers.js'

/** Severity of a VEN's worst condition (P103). */
export type VenHealth = 'healthy' | 'warning' | 'error'

/** A problem that the PCE reports for a VEN. */
export interface VenCondition {
  /** The PCE's token for the condition. */
  condition: string
  /** What the condition means, in words. */
  means: string
  severity: VenHealth
  /** When the condition was first reported; null if the PCE does not say. */
  since: string | null
}

/**
 * Meanings of condition tokens. The first four are those that the PCE can filter by; the others are event types and
 * health messages of older releases (P103).
 */
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

/** Describes a condition token in words. A token without documentation is spelled out. */
export const meaningOf = (condition: string): string =>
  MEANINGS[condition] ?? condition.replace(/^agent\./, '').replaceAll('_', ' ')

/** Returns the problems that the PCE reports for a VEN, in the PCE's order. */
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

/** What the PCE says about the workload of a VEN; fields are null if it says nothing. */
export interface VenWork {
  workload: string | null
  mode: string | null
  online: boolean | null
  /** Policy synchronisation state: `applied`, `syncing`, `staged` … (P105). */
  sync: string | null
}

/** Describes the workload of a VEN. On a Kubernetes node a VEN has several, and the first is the host. */
export function workOf({ workloads }: Pick<Ven, 'workloads'>): VenWork {
  const [first] = workloads ?? []
  return {
    workload: first?.href ?? null,
    mode: first?.enforcement_mode ?? null,
    online: first?.online ?? null,
    sync: first?.security_policy_sync_state ?? null,
  }
}

const DAY_MS = 86_400_000

/**
 * True if the PCE counts the VEN as online although its last heartbeat is more than a day old. Heartbeats arrive every
 * five minutes (P78). `now` is in milliseconds since the epoch.
 */
export function isSilentOnline(ven: Ven, now: number): boolean {
  if (ven.last_heartbeat_at == null || (ven.status ?? 'active') !== 'active') return false
  return workOf(ven).online === true && now - Date.parse(ven.last_heartbeat_at) > DAY_MS
}

/** Returns one remark about all VENs that are online but silent; empty if there are none. */
export const remarkOnSilent = (many: number): string[] =>
  many === 0
    ? []
    : [
        `${countOf(many, 'VEN')} counted online by the PCE ${many === 1 ? 'has' : 'have'} sent no heartbeat for more than a day: status and heartbeat disagree.`,
      ]

const RELEASE = /^\d+(?:\.\d+){0,3}(?:-\d+)?$/
const numbersOf = (release: string) => release.split(/[.-]/)
/** Number of components in a complete build number such as `24.5.0-72`. */
const WHOLE_RELEASE = 4

/** True for a release number or the beginning of one. */
export const isRelease = (text: string): boolean => RELEASE.test(text)
/** True if the text names a single build. A shorter number stands for all builds that begin with it. */
export const isWholeRelease = (text: string): boolean => numbersOf(text).length >= WHOLE_RELEASE

/**
 * True if a release is not newer than a bound. A bound with fewer components includes all builds of it: `24.5.0-72` is
 * up to `24.5`.
 */
export function isUpTo(release: string, bound: string): boolean {
  const wanted = numbersOf(bound)
  const own = numbersOf(release)
  const at = wanted.findIndex((number, index) => Number(own[index] ?? 0) !== Number(number))
  return at === -1 || Number(own[at] ?? 0) < Number(wanted[at])
}

/** Returns the name under which people know a VEN. */
export const nameOfVen = ({ name, hostname, href }: Pick<Ven, 'name' | 'hostname' | 'href'>): string =>
  name || hostname || href

/** Compares releases and builds numerically: `24.5.0-72` before `25.2.9-1` before `25.2.10-101`. */
export const compareReleases = new Intl.Collator('en', { numeric: true }).compare
