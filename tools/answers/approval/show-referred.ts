import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { withoutFalseExclusions } from '../../../domain/policy/diff-fields.js'
import { showNamesInside } from '../../../domain/policy/describe-changes.js'
import { isKindRead, type ReferredObject, type ReferredObjects } from '../../../domain/policy/read-referred.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { clipText, quote } from '../../../domain/text/escape-text.js'
import { CONTENT_LEFT_OUT, type ShownReference } from '../../../schemas/approvals.js'
import { jsonBytes } from '../byte-budget.js'
import { kindOf } from '../policy-words.js'

/**
 * Maximum number of entries shown for each list on a confirmation page, and maximum size in bytes of everything shown
 * there.
 */
const MOST_ENTRIES = 200
const MOST_BYTES = 64 * 1024
/** Maximum number of objects named in a sentence, and maximum length of one name. */
const MOST_NAMED = 5
const LONGEST_NAME = 100
/** Maximum number of objects listed in an answer to a model, and maximum length of the content of one object. */
const MOST_LISTED = 10
const LONGEST_CONTENT = 300
/**
 * The note on an object whose content is too long to be shown. A later change of the object is noticed nevertheless,
 * because its digest is known.
 */
const TOO_LONG =
  'What it contains is too long to be shown: look at it in the PCE before you decide. If it changes after that, the call is asked anew.'

/**
 * Shows the objects to which the requests of a call refer by href, with their names and contents: `page` for the
 * confirmation page, and `rows`, which is shorter, for the answer to a model. A note on an object says what is left
 * out.
 */
export function showReferred(referred: ReferredObjects): {
  page: { referred: ShownReference[]; referred_unread?: number }
  rows: Record<string, unknown>
} {
  const { objects, unread } = referred
  const names = nameReferred(referred)
  let room = MOST_BYTES
  const whole = objects.map((object) => (object.content === null ? null : readContent(object.content, names)))
  const page = objects.map((object, at): ShownReference => {
    const common = { kind: kindOf(object.kind), ...namedBy(object), href: object.href }
    const read = whole[at] ?? null
    if (read === null) return { ...common, note: `It ${whyUnread(object)}, so what it is now is not known.` }
    const { shown, notes } = read
    if (object.digest !== undefined) return { ...common, content: {}, note: TOO_LONG }
    const size = jsonBytes(shown)
    if (size > room) return { ...common, note: CONTENT_LEFT_OUT }
    room -= size
    return { ...common, content: shown, ...(notes.length > 0 && { note: `Not all is shown: ${notes.join(', ')}.` }) }
  })
  const listed = objects.slice(0, MOST_LISTED).map((object, at) => ({
    kind: kindOf(object.kind),
    ...namedBy(object),
    href: object.href,
    ...showContent(object, whole[at] ?? null),
  }))
  return {
    page: { referred: page, ...(unread > 0 && { referred_unread: unread }) },
    rows: objects.length === 0 ? {} : { refers_to_total: objects.length + unread, refers_to: listed },
  }
}

/**
 * Returns a sentence that names the objects to which the requests refer, for people who see no page. It is empty if no
 * object has a name.
 */
export function describeReferred({ objects }: ReferredObjects): string {
  const named = objects.flatMap((object) => {
    const { name } = namedBy(object)
    return object.as !== 'named' || name === undefined
      ? []
      : [`${kindOf(object.kind)} ${quote(clipText(name, LONGEST_NAME))}`]
  })
  if (named.length === 0) return ''
  const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : ''
  return ` It refers to ${named.slice(0, MOST_NAMED).join(', ')}${more}.`
}

/** Returns a function that looks up the name of an object by its href, among the objects that were read. */
export function nameReferred({ objects }: ReferredObjects): ReferenceNames {
  const known = new Map(objects.map((object) => [toDraftHref(object.href), object]))
  return (href) => {
    const { key, value, name, hostname } = known.get(toDraftHref(href))?.content ?? {}
    if (typeof key === 'string' && typeof value === 'string') return { key, value }
    const own = name ?? hostname
    return typeof own === 'string' ? { name: own } : {}
  }
}

/**
 * Warns of objects to which the requests refer and that were not read or are too long to be shown. If an object was not
 * read, a change to it between approval and call goes unnoticed.
 */
export const warnOfUnread = (referred: Unread): string[] => sayUnread(referred, 'requests', '')

/**
 * Warns of objects without a draft (such as labels and workloads) to which pending changes refer and that were not read
 * or are too long to be shown. Objects with a draft need no warning, because they are read together with the changes.
 */
export const warnOfUnreadNames = (named: Unread): string[] =>
  sayUnread(named, 'changes', ' without a draft (labels, workloads, user groups)')

type Unread = Pick<ReferredObjects, 'objects' | 'unread'>

function sayUnread({ objects, unread }: Unread, whose: string, which: string): string[] {
  const unreadObjects = objects.filter(({ content }) => content === null)
  const large = unreadObjects.filter(({ isTooLarge }) => isTooLarge === true)
  const long = objects.filter(({ digest }) => digest !== undefined)
  const failed = unreadObjects.filter(({ kind, isTooLarge }) => isKindRead(kind) && isTooLarge !== true)
  const never = unreadObjects.filter(({ kind }) => !isKindRead(kind))
  const say = (some: readonly ReferredObject[]) =>
    some.length === 0
      ? []
      : [
          `${countOf(some.length, 'object')}${which} that the ${whose} refer to ${whyUnread(some[0]!, some.length)}, so what is behind the href is not known and a change after the decision is not noticed: look at it in the PCE before you decide.`,
        ]
  return [
    ...say(failed),
    ...say(large),
    ...(long.length === 0
      ? []
      : [
          `${countOf(long.length, 'object')}${which} that the ${whose} refer to ${long.length === 1 ? 'is' : 'are'} too long to be shown: look at what is behind the href in the PCE before you decide. A change after the decision is noticed.`,
        ]),
    ...say(never),
    ...(unread > 0
      ? [
          `The ${whose} refer to ${countOf(objects.length + unread, 'object')}${which}, of which ${objects.length} were read. A change of the others after the decision is not noticed.`,
        ]
      : []),
  ]
}

function namedBy({ content }: ReferredObject): { name?: string } {
  const { key, value, name, hostname } = content ?? {}
  if (typeof key === 'string' && typeof value === 'string') return { name: `${key}: ${value}` }
  const own = name ?? hostname
  return typeof own === 'string' && own !== '' ? { name: own } : {}
}

function whyUnread({ kind, isTooLarge }: ReferredObject, count = 1): string {
  const be = count === 1 ? 'is' : 'are'
  if (isTooLarge === true) return `${be} too large to be read here`
  return isKindRead(kind) ? 'could not be read' : `${be} not read by this server`
}

/** What is shown of an object's content, without its name, and notes on what is left out. */
interface ShownContent {
  shown: Record<string, unknown>
  notes: string[]
}

/**
 * Returns an object's content for display. Lists are clipped before names are added, so that long lists take no more
 * time than short ones.
 */
function readContent(content: Record<string, unknown>, names: ReferenceNames): ShownContent {
  const { shown, notes } = clipLists(besideName(content))
  return { shown: showNamesInside(withoutFalseExclusions(shown), names) as Record<string, unknown>, notes }
}

function showContent(object: ReferredObject, read: ShownContent | null): { content?: string } {
  if (read === null) return { content: whyUnread(object) }
  if (object.digest !== undefined) return { content: 'is too long to be shown' }
  if (Object.keys(read.shown).length === 0) return {}
  return { content: clipText(JSON.stringify(read.shown), LONGEST_CONTENT) }
}

/**
 * Returns the content without the fields from which the object's name is formed, and without `deleted` unless it is
 * true.
 */
const besideName = ({ key, value, name, ...rest }: Record<string, unknown>): Record<string, unknown> => {
  const { deleted, ...content } = rest
  const isLabel = typeof key === 'string' && typeof value === 'string'
  return {
    ...(!isLabel && key !== undefined && { key }),
    ...(typeof name !== 'string' && name !== undefined && { name }),
    ...content,
    ...(deleted === true && { deleted }),
  }
}

function clipLists(content: Record<string, unknown>): ShownContent {
  const notes: string[] = []
  const shown = Object.fromEntries(
    Object.entries(content).map(([field, value]) => {
      if (!Array.isArray(value) || value.length <= MOST_ENTRIES) return [field, value]
      notes.push(`${MOST_ENTRIES} of ${value.length} entries of ${field}`)
      return [field, value.slice(0, MOST_ENTRIES)]
    }),
  )
  return { shown, notes }
}
