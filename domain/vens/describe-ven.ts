import type { Ven } from '../../schemas/pce/ven.js'
import { countOf } from '../text/describe-numbers.js'

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

const DAY_MS = 86_400_000

/**
 * Whether the PCE counts it online, while its last heartbeat is older than a day, of which one arrives every five minutes (P78). `now` in
 * milliseconds since the epoch.
 */
export function isSilentOnline(ven: Ven, now: number): boolean {
  if (ven.last_heartbeat_at == null || (ven.status ?? 'active') !== 'active') return false
  return workOf(ven).online === true && now - Date.parse(ven.last_heartbeat_at) > DAY_MS
}

/** One remark on all such VENs; none where there are none. */
export const remarkOnSilent = (many: number): string[] =>
  many === 0
    ? []
    : [
        `${countOf(many, 'VEN')} counted online by the PCE ${many === 1 ? 'has' : 'have'} sent no heartbeat for more than a day: status and heartbeat disagree.`,
      ]

const RELEASE = /^\d+(?:\.\d+){0,3}(?:-\d+)?$/
const numbersOf = (release: string) => release.split(/[.-]/)
/** Numbers of a build, `24.5.0-72`. */
const WHOLE_RELEASE = 4

/** A release, or its first numbers. */
export const isRelease = (text: string): boolean => RELEASE.test(text)
/** Whether it names one build; fewer numbers stand for all that begin with them. */
export const isWholeRelease = (text: string): boolean => numbersOf(text).length >= WHOLE_RELEASE

/** Whether a release is a bound, of which it may have more numbers, or earlier: `24.5.0-72` is up to `24.5`. */
export function isUpTo(release: string, bound: string): boolean {
  const wanted = numbersOf(bound)
  const own = numbersOf(release)
  const at = wanted.findIndex((number, index) => Number(own[index] ?? 0) !== Number(number))
  return at === -1 || Number(own[at] ?? 0) < Number(wanted[at])
}

/** The name that people know it by. */
export const nameOfVen = ({ name, hostname, href }: Pick<Ven, 'name' | 'hostname' | 'href'>): string =>
  name || hostname || href

/** Releases and their builds by their numbers: `24.5.0-72` before `25.2.9-1` before `25.2.10-101`. */
export const compareReleases = new Intl.Collator('en', { numeric: true }).compare
