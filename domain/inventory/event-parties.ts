import type { PceEvent } from '../../schemas/pce/event.js'
import { splitLabel } from './labels.js'
import { toDraftHref } from './parse-href.js'

/** A person, machine or object that an event names. The PCE may leave out any of these fields or set it to null. */
export interface EventParty {
  /** The name of the event's field that contains the party, such as `user`, `agent` or `rule_set`. */
  kind: string
  href?: string
  /** All names by which the event identifies the party, such as a user name, host name or label value. */
  names: readonly string[]
  /** The key and value if the party is a label. */
  key?: string
  value?: string
}

type Fields = Record<string, unknown>

/**
 * The fields of a party object that may contain a name of the party. A failed login has only `supplied_username`, which
 * may be any string and need not be the name of a PCE user.
 */
const NAMES = ['username', 'supplied_username', 'name', 'hostname', 'full_name', 'value'] as const

/** The fields of a notification that contain a person or an account. */
const PEOPLE: ReadonlySet<string> = new Set(['user', 'associated_user', 'service_account'])
/**
 * The types of event creators whose events are about other objects. Events created by anything else, such as a VEN, are
 * mostly about the creator itself.
 */
const ACTORS: ReadonlySet<string> = new Set([...PEOPLE, 'system'])

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function partyOf(kind: string, fields: Fields): EventParty {
  const { href, key, value } = fields
  return {
    kind,
    names: NAMES.map((field) => fields[field]).filter(isText),
    ...(isText(href) && { href }),
    ...(isText(key) && isText(value) && { key, value }),
  }
}

/**
 * Returns the parties in an object of an event, such as `created_by`. Each field of such an object may contain one
 * party or a list of parties.
 */
const partiesIn = (fields: unknown): EventParty[] =>
  !isFields(fields)
    ? []
    : Object.entries(fields).flatMap(([kind, inner]) =>
        (Array.isArray(inner) ? (inner as unknown[]) : [inner]).flatMap((one) =>
          isFields(one) ? [partyOf(kind, one)] : [],
        ),
      )

/** Returns the name under which a party is shown; undefined if the event gives only its href. */
export const shownName = ({ key, value, names }: EventParty): string | undefined =>
  key !== undefined && value !== undefined ? `${key}=${value}` : names[0]

const listOf = <T>(list: readonly (T | null)[] | null | undefined): T[] => (list ?? []).filter((one) => one !== null)

/**
 * Returns the parties named in the notifications of an event, such as the user who logged in or the VEN that missed its
 * heartbeats.
 */
const notified = (event: PceEvent): EventParty[] =>
  listOf(event.notifications).flatMap(({ info }) => {
    if (!isFields(info)) return []
    const own = partyOf('info', info)
    return [...(own.names.length > 0 || own.href !== undefined ? [own] : []), ...partiesIn(info)]
  })

/**
 * Returns the parties that caused an event. There may be two of them: an agent and its VEN. If the PCE names only
 * itself as the creator, as it does for logins, the people in the notifications count as well (P26).
 */
export function actorsOf(event: PceEvent): EventParty[] {
  const creators = partiesIn(event.created_by)
  if (creators.some(({ kind }) => kind !== 'system')) return creators
  const people = notified(event)
    .filter(({ kind }) => PEOPLE.has(kind))
    .map((one) => (one.kind === 'associated_user' ? { ...one, kind: 'user' } : one))
  return [...people, ...creators]
}

/**
 * Returns a string that shows who created an event: the creator's name, or else its href, or else its type; '-' if the
 * event names no creator.
 */
export function creatorOf(event: PceEvent): string {
  const actors = actorsOf(event)
  const named = actors.find(({ names }) => names.length > 0)
  return named?.names[0] ?? actors.find(({ href }) => href !== undefined)?.href ?? actors[0]?.kind ?? '-'
}

/** Returns each object that an event changed, with the entry of `resource_changes` that describes the change. */
export const changedParties = (event: PceEvent) =>
  listOf(event.resource_changes).flatMap((change) => partiesIn(change.resource).map((party) => ({ party, change })))

/**
 * Returns the parties that an event mentions but did not change: those in its notifications and, if a machine created
 * the event, this machine, because such events are about the machine itself.
 */
export const mentionedParties = (event: PceEvent): EventParty[] => [
  ...notified(event),
  ...partiesIn(event.created_by).filter(({ kind }) => !ACTORS.has(kind)),
]

/** Returns the path of the request that caused an event, without the API prefix; '' if no request caused it. */
export const endpointOf = ({ action }: PceEvent): string => (action?.api_endpoint ?? '').replace(/^\/api\/v\d+/, '')

/**
 * Returns the href of a workload's VEN, or the href of a VEN's workload. Both have the same id (P24). Returns null for
 * any other href.
 */
function twinOf(href: string): string | null {
  const twin = href.replace(/^(\/orgs\/\d+)\/(workloads|vens)(?=\/[^/]+$)/, (_, org: string, kind: string) =>
    kind === 'vens' ? `${org}/workloads` : `${org}/vens`,
  )
  return twin === href ? null : twin
}

/**
 * Returns a function that tests whether a party is the wanted one. `wanted` is an exact name, a label value,
 * `key=value` or an href. An href matches the object in any policy version and all objects contained in it, such as the
 * rules of a rule set. The href of a workload also matches its VEN, and the href of a VEN its workload.
 */
export function isParty(wanted: string): (party: Pick<EventParty, 'href'> & Partial<EventParty>) => boolean {
  if (wanted.startsWith('/')) {
    const href = toDraftHref(wanted)
    const twin = twinOf(wanted)
    return ({ href: given }) => {
      const other = toDraftHref(given ?? '')
      return other === href || other.startsWith(`${href}/`) || other === twin
    }
  }
  const pair = splitLabel(wanted)
  return ({ names = [], key, value }) =>
    names.includes(wanted) || (pair !== null && key === pair.key && value === pair.value)
}
