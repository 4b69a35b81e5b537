import { PceError, type PceClient } from '../../pce-client/index.js'
import { mapBounded } from '../text/pace-work.js'
import { quote } from '../text/escape-text.js'
import type { Author, Authored } from './pending-authors.js'
import { loadAuthorNames } from './reference-names.js'

/** A reason why the author of a change may be the user of this API key after all. */
type Doubt = Exclude<Author, `/${string}`> | 'keys_unread' | 'not_asked'

/** An author other than the user of this API key, with the objects that this author changed. */
export interface Other<T> {
  /** The author; null if the author is not known. In that case, `doubt` says why. */
  author: { href: string; name?: string } | null
  changes: T[]
  /**
   * The reason why the author may be the user of this API key after all; undefined if it is certainly somebody else.
   */
  doubt?: Doubt
}

/** The authors of some changes, except the user of this API key. */
export interface Others<T> {
  /** The other authors. Those whose API keys were not looked up come last. */
  list: Other<T>[]
  /** Number of changes that certainly or possibly have another author, possibly besides the user of this API key. */
  total: number
  /** True if the user of this key is also an author of one of these changes. */
  hasOwn: boolean
}

/** Maximum number of authors whose API keys are read. */
const MOST_ASKED = 10
/** Maximum number of authors that are listed with their names in an answer. */
export const MOST_LISTED = 10
const IN_FLIGHT = 4

/**
 * Finds the authors of changes, except the user or service account that owns this client's API key (P108). An author
 * that is not known counts as another author.
 */
export async function findOthers<T>(
  pce: PceClient,
  changes: readonly Authored<T>[],
  signal: AbortSignal,
): Promise<Others<T>> {
  const byAuthor = new Map<Author, Set<T>>()
  for (const { change, authors } of changes)
    for (const author of authors) byAuthor.set(author, (byAuthor.get(author) ?? new Set()).add(change))
  const { own, known } = await findOwn(pce, [...byAuthor.keys()].filter(isHref).slice(0, MOST_ASKED), signal)
  const doubtOf = (author: Author): Doubt | undefined => {
    if (!isHref(author)) return author
    if (own !== undefined || known.get(author) === false) return undefined
    return known.has(author) ? 'keys_unread' : 'not_asked'
  }
  const found = [...byAuthor]
    .filter(([author]) => author !== own)
    .map(([author, theirs]) => ({ author, changes: [...theirs], doubt: doubtOf(author) }))
  const others = [
    ...found.filter(({ doubt }) => doubt !== 'not_asked'),
    ...found.filter(({ doubt }) => doubt === 'not_asked'),
  ]
  const listed = others.slice(0, MOST_LISTED).map(({ author }) => author)
  const names = await loadAuthorNames(pce, listed.filter(isHref), signal)
  const touched = new Set(others.flatMap(({ changes: theirs }) => theirs))
  return {
    list: others.map(({ author, changes: theirs, doubt }) => {
      const name = names.get(author)
      return {
        author: isHref(author) ? { href: author, ...(name !== undefined && { name }) } : null,
        changes: theirs,
        ...(doubt !== undefined && { doubt }),
      }
    }),
    total: touched.size,
    hasOwn: own !== undefined && [...(byAuthor.get(own) ?? [])].some((change) => touched.has(change)),
  }
}

const isHref = (author: Author): author is `/${string}` => author.startsWith('/')

const USER = /^\/users\/(\d+)$/u
const ACCOUNT = /^\/orgs\/\d+\/service_accounts\/[\w-]+$/u

/**
 * Searches the authors for the one who owns this client's API key, and stops at a match. `known` has an entry for each
 * author whose keys were requested: true if this client's key is among them, null if they cannot be read.
 */
async function findOwn(pce: PceClient, authors: readonly `/${string}`[], signal: AbortSignal) {
  const known = new Map<Author, boolean | null>()
  let own: Author | undefined
  await mapBounded(authors, IN_FLIGHT, async (href) => {
    if (own !== undefined) return
    const isTheirs = await isOwn(pce, href, signal)
    known.set(href, isTheirs)
    if (isTheirs === true) own = href
  })
  return { own, known }
}

/** Returns whether an author owns this client's API key; null if the author's keys cannot be read. */
async function isOwn(pce: PceClient, author: string, signal: AbortSignal): Promise<boolean | null> {
  const user = USER.exec(author)?.[1]
  if (user === undefined && !ACCOUNT.test(author)) return false
  try {
    const keys: unknown =
      user === undefined
        ? (await pce.serviceAccounts.getByReference(author, { signal })).api_keys
        : await pce.getUserApiKeys(user, { signal })
    if (!Array.isArray(keys)) return null
    return keys.some((key: { auth_username?: unknown } | null) => {
      const name = key?.auth_username
      return typeof name === 'string' && pce.isUserName(name)
    })
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}

/** Maximum number of authors named in a sentence. */
const MOST_NAMED = 5

/**
 * Returns the names of the other authors as a list within a sentence. `show` returns what to put before an author's
 * name.
 */
export function nameOthers<T>(list: readonly Other<T>[], show: (other: Other<T>) => string = () => ''): string {
  const named = list.slice(0, MOST_NAMED).map((other) => `${show(other)}${nameOther(other)}`)
  const rest = list.slice(MOST_NAMED)
  const unasked = rest.filter(({ doubt }) => doubt === 'not_asked').length
  const possibly = unasked > 0 ? ` (${unasked} not looked up, possibly you among them)` : ''
  return [...named, ...(rest.length > 0 ? [`${rest.length} more${possibly}`] : [])].join(', ')
}

const DOUBTS: Record<Doubt, string> = {
  unnamed: 'an author whom the PCE does not name',
  unread: 'authors not known, because not all rules could be read',
  keys_unread: '(possibly you: the keys of this author cannot be read)',
  not_asked: `(possibly you: only the keys of ${MOST_ASKED} authors were asked for)`,
}

function nameOther({ author, doubt }: Other<unknown>): string {
  const why = doubt === undefined ? [] : [DOUBTS[doubt]]
  if (author === null) return why.join('')
  const name = author.name === undefined ? author.href : `${quote(author.name)} (${author.href})`
  return [name, ...why].join(' ')
}

/**
 * Returns a sentence that says how many changes were not made by the user of this API key, and who their authors are.
 */
export function describeOthers<T>(counted: string, { list, total, hasOwn }: Others<T>): string {
  const isCertain = list.every(({ doubt }) => doubt === undefined)
  const yours = `${isCertain ? '' : 'known to be '}yours${hasOwn ? ' alone' : ''}`
  const who = nameOthers(list, ({ changes }) => `${changes.length} by `)
  return `Of ${counted}, ${total} ${total === 1 ? 'is' : 'are'} not ${yours}: ${who}.`
}
