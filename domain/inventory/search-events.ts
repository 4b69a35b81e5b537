import type { PceEvent } from '../../schemas/pce/event.js'
import { nearNames } from '../text/compare-texts.js'
import { splitLabel } from './labels.js'
import { toDraftHref } from './parse-href.js'

/** The kinds of creators an event can have. */
const CREATORS = ['user', 'agent', 'ven', 'container_cluster', 'service_account', 'system'] as const

type Named = { href?: string; username?: string | null; hostname?: string | null; name?: string | null }

const creatorsOf = ({ created_by: by }: PceEvent) => Object.entries((by ?? {}) as Record<string, Named | null>)
const nameOf = (named: Named | null) => named?.username ?? named?.hostname ?? named?.name ?? undefined

/** Returns who caused an event: the name of a user, host or account, or the kind if there is no name. */
export const creatorOf = (event: PceEvent): string => {
  const [first] = creatorsOf(event)
  return first === undefined ? '-' : (nameOf(first[1]) ?? first[0])
}

/** The most creators that a note lists. */
const MOST_NAMED = 10

/**
 * Builds the test for one creator: a kind (`user`), an href, or an exact name. Creators are compared here, because the
 * syntax of the PCE's own filter is not documented (P26). If no event matched by name, `explainNone` says who caused
 * the events that were tested.
 */
export function byCreator(wanted: string): {
  test: (event: PceEvent) => boolean
  explainNone: () => string | undefined
} {
  const seen = new Set<string>()
  const isKind = (CREATORS as readonly string[]).includes(wanted)
  const isName = !isKind && !wanted.startsWith('/')
  return {
    test(event) {
      if (isName) seen.add(creatorOf(event))
      return creatorsOf(event).some(([kind, creator]) =>
        isKind ? kind === wanted : isName ? nameOf(creator) === wanted : creator?.href === wanted,
      )
    },
    explainNone() {
      if (seen.size === 0) return undefined
      const [near] = nearNames(wanted, seen, 1)
      const known = [...seen].sort().slice(0, MOST_NAMED).join(', ')
      const more = seen.size > MOST_NAMED ? ` and ${seen.size - MOST_NAMED} others` : ''
      return `None of these events is by "${wanted}"; ${near === undefined ? `they are by ${known}${more}.` : `did you mean ${near}?`}`
    },
  }
}

/**
 * Builds the test for the object of an event: an href, in any version and including what lies inside it, or an exact
 * name, label value or `key=value`. An event of a failed request lists no changes, so it can only be found by href.
 */
export function byObject(wanted: string): (event: PceEvent) => boolean {
  const isHref = wanted.startsWith('/')
  const href = toDraftHref(wanted)
  const isInside = (other: string) => other === href || other.startsWith(`${href}/`)
  const pair = splitLabel(wanted)
  const isMeant = (resource: Named & { key?: string; value?: string }) =>
    isHref
      ? resource.href !== undefined && isInside(toDraftHref(resource.href))
      : [resource.name, resource.hostname, resource.username, resource.value].includes(wanted) ||
        (pair !== null && resource.key === pair.key && resource.value === pair.value)
  return ({ resource_changes: changes, action }) => {
    const { api_endpoint: endpoint } = (action ?? {}) as { api_endpoint?: string | null }
    if (isHref && isInside(toDraftHref((endpoint ?? '').replace(/^\/api\/v\d+/, '')))) return true
    return (changes ?? []).some(({ resource }) =>
      Object.values((resource ?? {}) as Record<string, unknown>).some(
        (one) => typeof one === 'object' && one !== null && isMeant(one),
      ),
    )
  }
}

/** The most values that a count lists; all others are summed up in one number. */
const MOST_COUNTED = 100

type Counts = Record<string, number>

/** The fields by which events are counted. */
const COUNTED = {
  event_type: ({ event_type: type }: PceEvent) => type,
  created_by: creatorOf,
  status: ({ status }: PceEvent) => status ?? '-',
  severity: ({ severity }: PceEvent) => severity,
}
type Counted = keyof typeof COUNTED

/**
 * Creates a counter for events as they arrive: how many there are per type, creator, status and severity, most frequent
 * first.
 */
export function createEventCount() {
  const counts = new Map(Object.keys(COUNTED).map((by) => [by as Counted, new Map<string, number>()]))
  let total = 0
  return {
    count: (event: PceEvent) => {
      total += 1
      for (const [by, found] of counts) {
        const key = COUNTED[by](event)
        found.set(key, (found.get(key) ?? 0) + 1)
      }
    },
    total: () => total,
    counts: () =>
      Object.fromEntries([...counts].map(([by, found]) => [by, mostFirst(found)])) as Record<Counted, Counts>,
  }
}

function mostFirst(counts: ReadonlyMap<string, number>): Counts {
  const sorted = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
  const others = sorted.slice(MOST_COUNTED).reduce((sum, [, count]) => sum + count, 0)
  return Object.fromEntries([...sorted.slice(0, MOST_COUNTED), ...(others > 0 ? [['(others)', others] as const] : [])])
}
