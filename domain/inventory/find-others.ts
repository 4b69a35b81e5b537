import { PceError, type PceClient } from '../../pce-client/index.js'
import { mapBounded } from '../text/pace-work.js'
import { quote } from '../text/escape-text.js'
import { loadAuthorNames } from './reference-names.js'

/** A change with the last author that the PCE gives for it. */
interface Authored {
  updated_by?: { href?: unknown } | null
}

/** Somebody other than the user of this key, with the changes that they made last. */
export interface Other<T> {
  /** Null if the PCE does not say who it was. */
  author: { href: string; name?: string } | null
  changes: T[]
  /** True if the keys of the author could not be read, so that it is possibly the user of this key. */
  isUnsure: boolean
}

/** Maximum number of authors whose keys and names are looked up; further authors count as others. */
const MOST_ASKED = 10
const IN_FLIGHT = 4

/**
 * Finds the authors of changes other than the user or service account whose key this client has (P108). An author that
 * is not known counts as another.
 */
export async function findOthers<T extends Authored>(
  pce: PceClient,
  changes: readonly T[],
  signal: AbortSignal,
): Promise<Other<T>[]> {
  const byAuthor = new Map<string | null, T[]>()
  for (const change of changes) {
    const href = typeof change.updated_by?.href === 'string' ? change.updated_by.href : null
    byAuthor.set(href, [...(byAuthor.get(href) ?? []), change])
  }
  const asked = [...byAuthor.keys()].flatMap((href) => href ?? []).slice(0, MOST_ASKED)
  const own = new Map<string, boolean | null>()
  await mapBounded(asked, IN_FLIGHT, async (href) => void own.set(href, await isOwn(pce, href, signal)))
  const isFound = [...own.values()].includes(true)
  const others = [...byAuthor].filter(([href]) => href === null || own.get(href) !== true)
  const names = await loadAuthorNames(
    pce,
    others.flatMap(([href]) => (href !== null && own.has(href) ? href : [])),
    signal,
  )
  return others.map(([href, theirs]) => {
    const name = href === null ? undefined : names.get(href)
    return {
      author: href === null ? null : { href, ...(name !== undefined && { name }) },
      changes: theirs,
      isUnsure: href !== null && !isFound && own.get(href) !== false,
    }
  })
}

const USER = /^\/users\/(\d+)$/u
const ACCOUNT = /^\/orgs\/\d+\/service_accounts\/[\w-]+$/u

/** Returns whether the key of this client is one of the author's keys; null if these cannot be read. */
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

/** Names one of the others in a sentence. */
export function nameOther({ author, isUnsure }: Other<unknown>): string {
  if (author === null) return 'an author whom the PCE does not name'
  const name = author.name === undefined ? author.href : `${quote(author.name)} (${author.href})`
  return isUnsure ? `${name} (possibly you: the keys of this author cannot be read)` : name
}
