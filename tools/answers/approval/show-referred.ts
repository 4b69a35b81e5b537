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

/** Upper bounds: the entries of a list that the page shows, and the bytes of all contents together. */
const MOST_ENTRIES = 200
const MOST_BYTES = 64 * 1024
/** Upper bounds of a sentence: how many names, and their length. */
const MOST_NAMED = 5
const LONGEST_NAME = 100
/** Upper bounds of an answer to a model: how many objects, and the length of one content. */
const MOST_LISTED = 10
const LONGEST_CONTENT = 300

/**
 * Shows the objects behind the hrefs of a call's requests, each by name and content: for the page, and shorter for the
 * answer to a model. What is left out is said beside the object.
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

/** Names what the requests refer to, for people who see a sentence alone; empty if there is nothing with a name. */
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

/** Returns the names of the objects that were read, for the hrefs inside the requests. */
export function nameReferred({ objects }: ReferredObjects): ReferenceNames {
  const known = new Map(objects.map((object) => [toDraftHref(object.href), object]))
  return (href) => {
    const { key, value, name, hostname } = known.get(toDraftHref(href))?.content ?? {}
    if (typeof key === 'string' && typeof value === 'string') return { key, value }
    const own = name ?? hostname
    return typeof own === 'string' ? { name: own } : {}
  }
}

/** Says which objects were not read, so that a later change of them is not noticed. */
export const warnOfUnread = (referred: Unread): string[] => sayUnread(referred, 'requests', '')

/** Says the same of what pending changes name. The objects in them that have a draft are read with it. */
export const warnOfUnreadNames = (named: Unread): string[] =>
  sayUnread(named, 'changes', ' without a draft (labels, workloads, user groups)')

type Unread = Pick<ReferredObjects, 'objects' | 'unread'>

function sayUnread({ objects, unread }: Unread, whose: string, which: string): string[] {
  const unreadObjects = objects.filter(({ content }) => content === null)
  const large = unreadObjects.filter(({ isTooLarge }) => isTooLarge === true)
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

/** What is shown of an object, beside its name, and what is left out of it. */
interface ShownContent {
  shown: Record<string, unknown>
  notes: string[]
}

/** Lists are clipped first, so that it takes no longer to show a list of thousands of entries. */
function readContent(content: Record<string, unknown>, names: ReferenceNames): ShownContent {
  const { shown, notes } = clipLists(besideName(content))
  return { shown: showNamesInside(withoutFalseExclusions(shown), names) as Record<string, unknown>, notes }
}

function showContent(object: ReferredObject, read: ShownContent | null): { content?: string } {
  if (read === null) return { content: whyUnread(object) }
  if (Object.keys(read.shown).length === 0) return {}
  return { content: clipText(JSON.stringify(read.shown), LONGEST_CONTENT) }
}

/** Leaves out what the name of the object says already, and that it is not deleted. */
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
