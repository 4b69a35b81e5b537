import { PceApiError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { nearPeople } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'

/** Functions that look up the authors of rules. */
export interface Authors {
  /** Returns the name of the user with this href; undefined if this account is not permitted to read the user. */
  nameOf(href: string): string | undefined
  /**
   * Returns true if the requested author created or last changed the rule. The function is undefined if no author was
   * requested.
   */
  isAuthor: ((rule: Stamped) => boolean) | undefined
}

interface Stamped {
  created_by?: { href?: string } | null
  updated_by?: { href?: string } | null
}

/**
 * Creates the functions that look up authors. `author` is a user name, full name or href. The whole name must match,
 * but case is ignored. Throws not_found with similar names. If this account may not list users, only an href is
 * accepted.
 */
export async function createAuthorTest(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  author: string | undefined,
): Promise<Authors> {
  const users = await fetchEvery<User>({ api: pce.users, params: {}, signal }).then(
    ({ items }) => items,
    (error: unknown) => {
      if (!(error instanceof PceApiError) || error.status === 401) throw error
      return null
    },
  )
  const names = new Map((users ?? []).map((user) => [user.href, user.username ?? user.full_name ?? undefined]))
  const wanted = author === undefined ? undefined : findAuthors(author.trim(), users)
  return {
    nameOf: (href) => names.get(href),
    isAuthor:
      wanted &&
      (({ created_by: creator, updated_by: updater }) =>
        [creator, updater].some((one) => one?.href !== undefined && wanted.has(one.href))),
  }
}

interface User {
  href: string
  username?: string | null
  full_name?: string | null
}

function findAuthors(author: string, users: readonly User[] | null): ReadonlySet<string> {
  if (author.startsWith('/')) return new Set([author])
  if (users === null) {
    const text = 'author: this account may not list users, so give the href of one, as in updated_by of a rule.'
    throw new ToolError('invalid_argument', text, { argument: 'author' })
  }
  const namesOf = ({ username, full_name: full }: User) => [username, full].filter((name) => name != null)
  const wanted = author.toLowerCase()
  const found = users.filter((user) => namesOf(user).some((name) => name.toLowerCase() === wanted))
  if (found.length > 0) return new Set(found.map(({ href }) => href))
  const near = nearPeople(author, users.flatMap(namesOf))
  throw new ToolError('not_found', `author: no user is called ${quote(author)}.`, {
    argument: 'author',
    near_names: near,
  })
}
