import type { PceEvent } from '../../schemas/pce/event.js'
import { nearPeople } from '../text/compare-texts.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { actorsOf, changedParties, creatorOf, endpointOf, isParty, mentionedParties } from './event-parties.js'

/** The types of creators that a caller can search for, with the names that `created_by` uses in events. */
const CREATORS: ReadonlySet<string> = new Set([
  'user',
  'agent',
  'ven',
  'workload',
  'container_cluster',
  'service_account',
  'system',
])

/** Maximum number of creators or event types listed in a note. */
const MOST_NAMED = 10

type EventTest = (event: PceEvent) => boolean

/**
 * Builds a test for the creator of an event (see `actorsOf`). The creator is given by its type (such as `user`), href
 * or exact name.
 */
function byCreator(wanted: string): EventTest {
  if (CREATORS.has(wanted)) return (event) => actorsOf(event).some(({ kind }) => kind === wanted)
  if (wanted.startsWith('/')) return (event) => actorsOf(event).some(({ href }) => href === wanted)
  return (event) => actorsOf(event).some(({ names }) => names.includes(wanted))
}

/**
 * Returns a function that tests whether an event is about the requested object: the event changed it, names it in a
 * notification, or was created by this machine to report about itself. The event of a failed request lists no changes,
 * so only an href in its request path shows the object.
 */
function byObject(wanted: string): EventTest {
  const isMeant = isParty(wanted)
  const isHref = wanted.startsWith('/')
  return (event) =>
    (isHref && isMeant({ href: endpointOf(event) })) ||
    changedParties(event).some(({ party }) => isMeant(party)) ||
    mentionedParties(event).some(isMeant)
}

/** The criteria of an event search that the PCE cannot apply itself. */
interface EventTerms {
  created_by?: string | undefined
  object?: string | undefined
}

/** A filter that selects events by their creator and by the object that they are about. */
export interface EventFilter {
  /** A function that returns true if an event matches; undefined if the caller gave neither a creator nor an object. */
  test: EventTest | undefined
  /**
   * Explains an empty result: how many and which events were tested, who caused them, and whether the given name occurs
   * in the other role (as the object instead of the creator, or the reverse).
   *
   * @param tested number of events that the PCE sent.
   * @param asked a phrase that says which events were requested from the PCE; '' for all events.
   * @param isCut true if the PCE has events that it did not send.
   */
  explainNone: (tested: number, asked: string, isCut: boolean) => string
}

/**
 * Creates the filter for events. This server compares creators and objects itself, because the PCE's own filter has an
 * undocumented syntax and does not search notifications (P26).
 */
export function filterEvents({ created_by: by, object }: EventTerms): EventFilter {
  const isBy = by === undefined ? undefined : byCreator(by)
  const isAbout = object === undefined ? undefined : byObject(object)
  const found = { by: createTally(), about: createTally() }
  const elsewhere = { by: createTally(), about: createTally() }
  const swapped = {
    by: by === undefined || CREATORS.has(by) ? undefined : byObject(by),
    about: object === undefined ? undefined : byCreator(object),
  }
  const names = new Set<string>()
  let [oldest, newest] = ['', '']
  const explainNone: EventFilter['explainNone'] = (tested, asked, isCut) => {
    if (tested === 0) return `The PCE has no event${asked}.`
    const reach = isCut ? `the newest${asked}, as the PCE sends no more` : `all that it has${asked}`
    const looked = `The PCE sent ${countOf(tested, 'event')} (${reach})${newest === '' ? '' : `, from ${oldest} to ${newest}`}`
    const parts = [
      ...(by === undefined ? [] : [found.by.describe(`by ${quote(by)}`)]),
      ...(object === undefined ? [] : [found.about.describe(`about ${quote(object)}`)]),
    ]
    const isKnown = found.by.count() > 0 || elsewhere.by.count() > 0
    return [
      parts.length === 0 ? `${looked}.` : `${looked}: ${parts.join(', ')}.`,
      found.by.count() > 0 && found.about.count() > 0 ? 'None is both.' : '',
      by === undefined || isKnown ? '' : describeOthers(by, names, asked === '' && !isCut),
      elsewhere.by.advise('about it', 'object'),
      elsewhere.about.advise('by it', 'created_by'),
    ]
      .filter((text) => text !== '')
      .join(' ')
  }
  if (isBy === undefined && isAbout === undefined) return { test: undefined, explainNone }
  const look = (event: PceEvent) => {
    const at = event.timestamp ?? ''
    if (at !== '' && (oldest === '' || at < oldest)) oldest = at
    if (at > newest) newest = at
    if (isBy !== undefined) names.add(creatorOf(event))
  }
  return {
    explainNone,
    test(event) {
      look(event)
      const [ofCreator, ofObject] = [isBy?.(event), isAbout?.(event)]
      if (ofCreator === true) found.by.add(event)
      else if (swapped.by?.(event) === true) elsewhere.by.add(event)
      if (ofObject === true) found.about.add(event)
      else if (swapped.about?.(event) === true) elsewhere.about.add(event)
      return ofCreator !== false && ofObject !== false
    },
  }
}

/** Creates a tally of events and their types. Each event counts once, even if the list is read again. */
function createTally() {
  const hrefs = new Set<string>()
  const types = new Set<string>()
  return {
    add(event: PceEvent) {
      hrefs.add(event.href)
      types.add(event.event_type ?? '-')
    },
    count: () => hrefs.size,
    describe: (role: string) => (hrefs.size === 0 ? `none is ${role}` : `${hrefs.size} ${role}`),
    advise: (role: string, argument: string) =>
      hrefs.size === 0
        ? ''
        : `${countOf(hrefs.size, 'event')} ${hrefs.size === 1 ? 'is' : 'are'} ${role} (${shortList(types)}): ask with ${argument}.`,
  }
}

/**
 * Describes who caused the events if the requested creator caused none of them. A similar name is only mentioned, not
 * searched for, because it may belong to another person. If the PCE has further events, no similar name is mentioned,
 * because the requested creator may have caused some of those.
 */
function describeOthers(wanted: string, names: ReadonlySet<string>, areAll: boolean): string {
  const [near] = !areAll || CREATORS.has(wanted) || wanted.startsWith('/') ? [] : nearPeople(wanted, names, 1)
  return near === undefined
    ? `They are by ${shortList(names, quote)}.`
    : `The most similar name among them is ${quote(near)}.`
}

function shortList(all: ReadonlySet<string>, write = (text: string) => text): string {
  const more = all.size > MOST_NAMED ? ` and ${all.size - MOST_NAMED} others` : ''
  return `${[...all].sort().slice(0, MOST_NAMED).map(write).join(', ')}${more}`
}

/**
 * Maximum number of distinct values of a field that are counted separately. Events with further values are counted
 * together.
 */
const MOST_COUNTED = 100

type Counts = Record<string, number>

/** The fields by which events are counted. */
const COUNTED = {
  event_type: ({ event_type: type }: PceEvent) => type ?? '-',
  created_by: creatorOf,
  status: ({ status }: PceEvent) => status ?? '-',
  severity: ({ severity }: PceEvent) => severity ?? '-',
}
type Counted = keyof typeof COUNTED

/**
 * Creates a counter for events as they arrive. It counts them by type, creator, status and severity, each with the most
 * frequent values first.
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
