import type { Ven } from '../../schemas/pce/ven.js'
import { countOf } from '../text/describe-numbers.js'
import { fieldsOf, objectsOf, textOf } from './read-fields.js'

/** The severity of a VEN's worst condition (P103). */
export type VenHealth = 'healthy' | 'warning' | 'error'

/** A problem that the PCE reports for a VEN. */
export interface VenCondition {
  /** The PCE's identifier of the condition, such as `agent.missed_heartbeats`. */
  condition: string
  /** A description of the condition in words. */
  means: string
  severity: VenHealth
  /** The time when the condition was first reported; null if the PCE does not say. */
  since: string | null
  /** The release that the VEN runs, if the condition names it. */
  current_version?: string
  /** The release that the VEN should run, if the condition names it. */
  desired_version?: string
}

/**
 * What the PCE's identifiers of conditions mean. The PCE can filter by the first four. The others are event types and
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
  'agent.security_policy_refresh_failure': 'it could not fetch or apply a policy',
}

/** The conditions by which the PCE can filter, according to its documentation. */
export const KNOWN_CONDITIONS = Object.keys(MEANINGS).slice(0, 4)

const MISSED_HEARTBEATS = 'agent.missed_heartbeats'
const bare = (condition: string): string => condition.replace(/^agent\./, '')

/** Describes a condition in words. For an undocumented condition, the words are taken from its identifier. */
export const meaningOf = (condition: string): string =>
  MEANINGS[`agent.${bare(condition)}`] ?? bare(condition).replaceAll('_', ' ')

/**
 * Returns true if two identifiers mean the same condition. In workloads, the prefix `agent.` that VENs use is missing.
 */
export const isSameCondition = (a: string, b: string): boolean => bare(a) === bare(b)

/** Returns true if the condition means only that the VEN is offline. */
export const isOfSilence = ({ condition }: VenCondition): boolean => isSameCondition(condition, MISSED_HEARTBEATS)

/**
 * Returns the problems that a VEN's entry in the list of VENs reports, in the PCE's order; null if the entry has no
 * field for problems.
 */
export function conditionsOf({ conditions }: Pick<Ven, 'conditions'>): VenCondition[] | null {
  const given = objectsOf(conditions)
  return given === null
    ? null
    : given.map(({ first_reported_timestamp: first, latest_event: latest }) => {
        const event = fieldsOf(latest)
        const condition = textOf(event['notification_type']) ?? 'unknown'
        const severity = isError(event['severity']) ? 'error' : 'warning'
        const since = textOf(first) ?? textOf(event['timestamp'])
        return { condition, means: meaningOf(condition), severity, since, ...versionsOf(event['info']) }
      })
}

/**
 * Returns the problems that a workload's `agent.status` reports for its VEN in the fields `agent_health` and
 * `agent_health_errors`; null if it has neither field.
 */
export function agentHealthOf(status: unknown): VenCondition[] | null {
  const { agent_health: health, agent_health_errors: errors } = fieldsOf(status)
  const listed = objectsOf(health)
  const { errors: failed, warnings: warned } = fieldsOf(errors)
  const lists = [failed, warned].filter((list) => Array.isArray(list))
  if (listed === null && lists.length === 0) return null
  const named = (list: unknown, severity: 'error' | 'warning') =>
    (Array.isArray(list) ? list : []).flatMap((one) => {
      const isObject = typeof one === 'object' && one !== null
      const condition = textOf(one) ?? (isObject ? (textOf(fieldsOf(one)['type']) ?? 'unknown') : null)
      return condition === null ? [] : [{ condition, means: meaningOf(condition), severity, since: null }]
    })
  const typed = (listed ?? []).flatMap((one) => named([one], isError(one['severity']) ? 'error' : 'warning'))
  return joinConditions([...typed, ...named(failed, 'error'), ...named(warned, 'warning')])
}

const isError = (severity: unknown): boolean => /^err/i.test(textOf(severity) ?? '')

/**
 * Reads both releases from the `info` of a condition's event: from `info` itself, or from the agent or VEN inside it.
 */
function versionsOf(info: unknown): Pick<VenCondition, 'current_version' | 'desired_version'> {
  const inside = fieldsOf(info)
  const fields = Object.entries({ ...fieldsOf(inside['agent']), ...fieldsOf(inside['ven']), ...inside })
  const find = (word: string) =>
    textOf(fields.find(([name, value]) => name.includes(word) && name.includes('version') && textOf(value))?.[1])
  const [current, desired] = [find('current'), find('desired')]
  return {
    ...(current !== null && { current_version: current }),
    ...(desired !== null && { desired_version: desired }),
  }
}

/**
 * Merges the conditions from several sources. Each condition is listed once, with its worst severity and with the time
 * from the first source that has one.
 */
export function joinConditions(found: readonly VenCondition[]): VenCondition[] {
  const joined = new Map<string, VenCondition>()
  for (const one of found) {
    const known = joined.get(one.means)
    const severity = known?.severity === 'error' ? 'error' : one.severity
    joined.set(one.means, known === undefined ? one : { ...one, ...known, severity, since: known.since ?? one.since })
  }
  return [...joined.values()]
}

/** Returns a remark on the VENs that count as online but send no heartbeats; an empty list if there are none. */
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

/** Returns true for a release number or the beginning of one. */
export const isRelease = (text: string): boolean => RELEASE.test(text)
/**
 * Returns true if a release number identifies a single build. A shorter number stands for all builds that begin with
 * it.
 */
export const isWholeRelease = (text: string): boolean => numbersOf(text).length >= WHOLE_RELEASE

/**
 * Returns true if a release is not newer than a given limit. A limit with fewer components than the release includes
 * all builds that begin with it: `24.5.0-72` is not newer than `24.5`.
 */
export function isUpTo(release: string, bound: string): boolean {
  const wanted = numbersOf(bound)
  const own = numbersOf(release)
  const at = wanted.findIndex((number, index) => Number(own[index] ?? 0) !== Number(number))
  return at === -1 || Number(own[at] ?? 0) < Number(wanted[at])
}
