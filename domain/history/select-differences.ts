import { ToolError } from '../../schemas/errors.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { parseHref } from '../inventory/parse-href.js'
import { loadAuthorNames } from '../inventory/reference-names.js'
import { changedRules } from '../policy/diff-rule-set.js'
import { noneNamed, type ChangeFilter } from '../policy/select-changes.js'
import { countOf } from '../text/describe-numbers.js'
import type { PolicyDifference } from './compare-policies.js'
import { READ_TYPES, draftHrefOf } from './load-policy.js'

type Changed = PolicyDifference['objects'][number]

/** Maximum number of authors whose names are read in order to find one of them by name. */
const MOST_FILTERED = 100
/** Maximum number of authors named in a note. */
const MOST_NAMED = 10

/**
 * Returns the differing objects that match. `note` says what the selection by author does not know.
 * @throws {ToolError} not_found naming the href or the name if neither version has an object with it.
 */
export async function selectDifferences(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal'>,
  { objects, before, after }: PolicyDifference,
  { type, href, name, author }: ChangeFilter & { author?: string },
): Promise<{ wanted: Changed[]; note?: string }> {
  const types = READ_TYPES.filter((one) => type === undefined || one === type)
  const all = types.flatMap((one) => [...before[one].values(), ...after[one].values()])
  let wanted = objects.filter(({ change }) => type === undefined || change.type === type)
  if (href !== undefined) {
    const target = objectHrefOf(href.trim())
    if (!all.some((object) => object.href === target)) {
      const text = `Neither of the two policies has ${type === undefined ? 'an object' : `an object of type ${type}`} ${href}.`
      throw new ToolError('not_found', text, { argument: 'href', href })
    }
    wanted = wanted.filter(({ change }) => change.href === target)
  }
  if (name !== undefined) {
    if (!all.some((object) => object.name === name))
      throw noneNamed(
        name,
        type,
        all.flatMap((object) => (typeof object.name === 'string' ? object.name : [])),
      )
    wanted = wanted.filter(({ versions: { draft, active } }) => [draft, active].some((one) => one?.name === name))
  }
  return author === undefined ? { wanted } : selectAuthor(ctx, wanted, author.trim())
}

/** Returns the draft href of an object; a rule stands for its rule set. */
function objectHrefOf(href: string): string {
  const parent = parseHref(href)?.parent
  return draftHrefOf(parent?.href ?? href)
}

async function selectAuthor(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  objects: Changed[],
  author: string,
) {
  const authors = new Map(objects.map((object) => [object, authorsOf(object)]))
  const all = new Set([...authors.values()].flat())
  const names = author.startsWith('/')
    ? new Map<string, string>()
    : await loadAuthorNames(pce, [...all], signal, MOST_FILTERED)
  const wanted = objects.filter((object) =>
    authors.get(object)?.some((href) => href === author || names.get(href) === author),
  )
  const unnamed = author.startsWith('/') ? 0 : all.size - names.size
  const people = [...all].map((href) => names.get(href) ?? href).sort()
  const notes = [
    ...(wanted.length === 0
      ? [
          `None of these differences is by "${author}"; they are by ${people.slice(0, MOST_NAMED).join(', ') || 'nobody known'}.`,
        ]
      : []),
    ...(unnamed > 0 ? [`The names of ${countOf(unnamed, 'author')} are not known: an href finds theirs.`] : []),
  ]
  return { wanted, ...(notes.length > 0 && { note: notes.join(' ') }) }
}

/** Returns the hrefs of the users who last edited an object and its changed rules, as the later version has them. */
function authorsOf({ change, versions: { draft, active } }: Changed): string[] {
  const rules = change.type === 'rule_sets' ? changedRules(draft as RuleSet | null, active as RuleSet | null) : []
  const stamps = [draft?.updated_by, ...rules.map(({ last }) => last?.updated_by)] as (
    { href?: string } | null | undefined
  )[]
  return [...new Set(stamps.flatMap((by) => by?.href ?? []))]
}
