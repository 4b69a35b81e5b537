import { isDeepStrictEqual } from 'node:util'

type Step = { before: unknown; after: unknown }

/**
 * Describes the change of a list as `{created, deleted, updated}` instead of `{before, after}`, as in recorded events
 * (P26). Empty parts are left out. All other fields keep `{before, after}`.
 */
export const tellListChanges = (changes: Readonly<Record<string, Step>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(changes).map(([field, step]) => [field, isOfList(step) ? compareLists(step) : step]),
  )

/**
 * Returns true if the value of the field is a list before or after the change. On the other side it may be null, for
 * example because a new object has no earlier state.
 */
const isOfList = ({ before, after }: Step): boolean =>
  (Array.isArray(before) || Array.isArray(after)) &&
  [before, after].every((side) => side === null || Array.isArray(side))

/**
 * Compares two lists. Entries with equal hrefs are the same entry; entries without an href are the same only if they
 * are equal in everything.
 */
function compareLists({ before, after }: Step): Record<string, unknown[]> {
  const [old, next] = [before, after].map(
    (side) => new Map(((side ?? []) as unknown[]).map((one) => [keyOf(one), one])),
  )
  const told = {
    created: [...next!].filter(([key]) => !old!.has(key)),
    deleted: [...old!].filter(([key]) => !next!.has(key)),
    updated: [...next!].filter(([key, entry]) => old!.has(key) && !isDeepStrictEqual(entry, old!.get(key))),
  }
  return Object.fromEntries(
    Object.entries(told).flatMap(([word, entries]) =>
      entries.length === 0 ? [] : [[word, entries.map(([, entry]) => entry)]],
    ),
  )
}

/** Returns a string that identifies a list entry, so that long lists can be compared in one pass. */
function keyOf(entry: unknown): string {
  const href = (entry as { href?: unknown } | null)?.href
  return typeof href === 'string' ? href : JSON.stringify(entry, withSortedKeys)
}

const withSortedKeys = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value
