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
 * Returns true if the field is a list before or after the change. The other value may be null, because a new object has
 * no earlier state.
 */
const isOfList = ({ before, after }: Step): boolean =>
  (Array.isArray(before) || Array.isArray(after)) &&
  [before, after].every((side) => side === null || Array.isArray(side))

/**
 * Compares two lists. Two entries with an href are the same entry if their hrefs are equal; two entries without an
 * href, only if they are entirely equal.
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

/** Returns the identity of a list entry as text, so that long lists are compared in one pass. */
function keyOf(entry: unknown): string {
  const href = (entry as { href?: unknown } | null)?.href
  return typeof href === 'string' ? href : JSON.stringify(entry, withSortedKeys)
}

const withSortedKeys = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value
