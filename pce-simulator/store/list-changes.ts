import { isDeepStrictEqual } from 'node:util'

type Step = { before: unknown; after: unknown }

/**
 * Replaces the steps of lists by `{created, deleted, updated}`, as recorded events tell them (P26). Of these three only
 * those with entries are there. All other steps stay `{before, after}`.
 */
export const tellListChanges = (changes: Readonly<Record<string, Step>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(changes).map(([field, step]) => [field, isOfList(step) ? compareLists(step) : step]),
  )

/** True for a list before or after; the other side may be null, because a new object has nothing before. */
const isOfList = ({ before, after }: Step): boolean =>
  (Array.isArray(before) || Array.isArray(after)) &&
  [before, after].every((side) => side === null || Array.isArray(side))

/** Entries with an href are the same if it is the same, all others if everything is. */
function compareLists({ before, after }: Step): Record<string, unknown[]> {
  const [old, next] = [before, after].map((side) => (side ?? []) as unknown[]) as [unknown[], unknown[]]
  const isSame = (one: unknown, other: unknown) =>
    hrefOf(one) === undefined ? isDeepStrictEqual(one, other) : hrefOf(one) === hrefOf(other)
  const told = {
    created: next.filter((entry) => !old.some((other) => isSame(entry, other))),
    deleted: old.filter((entry) => !next.some((other) => isSame(entry, other))),
    updated: next.filter((entry) => old.some((other) => isSame(entry, other) && !isDeepStrictEqual(entry, other))),
  }
  return Object.fromEntries(Object.entries(told).filter(([, entries]) => entries.length > 0))
}

const hrefOf = (entry: unknown): unknown => (entry as { href?: unknown } | null)?.href
