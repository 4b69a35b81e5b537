import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { loadAuthorNames } from '../inventory/reference-names.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import type { ChangedObject } from './describe-changes.js'
import { changedRules } from './diff-rule-set.js'

/** Maximum number of authors whose names are read to find the requested one. */
const MOST_FILTERED = 100
/** Maximum number of authors named in a note. */
const MOST_NAMED = 10

interface Authorship<T> {
  /** A count with a noun, such as "3 changes", that notes use for the items. */
  what: string
  /** Returns the hrefs of those authors of an item that are known without another request. */
  authorsOf: (item: T) => readonly string[]
  /**
   * Reads the hrefs of further authors. It is called with the items of which the requested user is not known to be an
   * author yet.
   */
  readMore?: (items: readonly T[]) => Promise<ReadonlyMap<T, readonly string[]>>
}

/**
 * Selects the items of which this user, given by href or exact name, is an author. If there are none, `notes` say who
 * the authors are. They also say how many authors' names are not known.
 */
export async function selectByAuthor<T>(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  items: readonly T[],
  author: string,
  { what, authorsOf, readMore }: Authorship<T>,
): Promise<{ wanted: T[]; notes: string[] }> {
  const isHref = author.startsWith('/')
  const authors = new Map(items.map((item) => [item, authorsOf(item)]))
  const all = new Set<string>()
  const names = new Map<string, string>()
  const learnNames = async () => {
    const others = [...new Set([...authors.values()].flat())].filter((href) => !all.has(href))
    const most = Math.max(0, MOST_FILTERED - all.size)
    for (const href of others) all.add(href)
    if (isHref) return
    for (const [href, name] of await loadAuthorNames(pce, others, signal, most)) names.set(href, name)
  }
  const isBy = (item: T) => authors.get(item)?.some((href) => href === author || names.get(href) === author) === true

  await learnNames()
  if (readMore !== undefined) {
    const more = await readMore(items.filter((item) => !isBy(item)))
    for (const [item, hrefs] of more) authors.set(item, [...(authors.get(item) ?? []), ...hrefs])
    await learnNames()
  }
  const wanted = items.filter(isBy)
  const unnamed = isHref ? 0 : all.size - names.size
  const people = [...all].map((href) => names.get(href) ?? href).sort()
  const notes = [
    wanted.length === 0
      ? `None of these ${what} is by ${quote(author)}; they are by ${people.slice(0, MOST_NAMED).map(quote).join(', ') || 'nobody known'}.`
      : '',
    unnamed > 0 ? `The names of ${countOf(unnamed, 'author')} are not known: an href finds theirs.` : '',
  ]
  return { wanted, notes: notes.filter((note) => note !== '') }
}

/**
 * Returns the hrefs of the users who last edited an object or its changed rules, as the later of the two compared
 * versions (`draft`) records them.
 */
export function authorsOfObject({ change, versions: { draft, active } }: ChangedObject): string[] {
  const rules = change.type === 'rule_sets' ? changedRules(draft as RuleSet | null, active as RuleSet | null) : []
  const stamps = [draft?.updated_by, ...rules.map(({ last }) => last?.updated_by)] as (
    { href?: string } | null | undefined
  )[]
  return [...new Set(stamps.flatMap((by) => by?.href ?? []))]
}
