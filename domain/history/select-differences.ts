import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { parseHref } from '../inventory/parse-href.js'
import { authorsOfObject, selectByAuthor } from '../policy/select-by-author.js'
import { noneNamed, type ChangeFilter } from '../policy/select-changes.js'
import { quote } from '../text/escape-text.js'
import type { PolicyDifference } from './compare-policies.js'
import { READ_TYPES, draftHrefOf } from './load-policy.js'

type Changed = PolicyDifference['objects'][number]

/**
 * Returns the differing objects that match the filter. `note` is only about a filter that contains an author: it lists
 * the authors if nothing matches, and counts the authors whose names are not known.
 * @throws {ToolError} not_found if neither version has an object with the given href or name, which the error contains.
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
      const text = `Neither of the two policies has ${type === undefined ? 'an object' : `an object of type ${type}`} ${quote(href)}.`
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
  if (author === undefined) return { wanted }
  const by = await selectByAuthor(ctx, wanted, author.trim(), { what: 'differences', authorsOf: authorsOfObject })
  return { wanted: by.wanted, ...(by.notes.length > 0 && { note: by.notes.join(' ') }) }
}

/** Returns the draft href of an object; for a rule, this is the href of its rule set. */
function objectHrefOf(href: string): string {
  const parent = parseHref(href)?.parent
  return draftHrefOf(parent?.href ?? href)
}
