import { AUTHORSHIP } from './authorship.js'
import type { FieldChange } from '../../schemas/policy-changes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { findDifferences } from './compare-stored.js'

/**
 * The fields that do not count as content of an object: the PCE's records about the object, and its rules, which are
 * compared separately.
 */
export const NO_CONTENT: ReadonlySet<string> = new Set([
  'href',
  ...AUTHORSHIP,
  'update_type',
  'caps',
  'usage',
  'rules',
  'deny_rules',
])

/**
 * The fields that contain whole objects with an href, not references. These objects are compared in full, because their
 * hrefs stay the same when their content changes.
 */
const OWN_OBJECTS = new Set(['ip_tables_rules'])

type Fields = Record<string, unknown>

/**
 * Lists the fields in which a draft differs from the active version, sorted by name. References are compared by href
 * alone, without the policy version, because renaming a referenced object is a change of that object. Null and absent
 * are equal, and the order of lists is ignored.
 */
export function diffFields(draft: object | null, active: object | null): FieldChange[] {
  const [a, b] = [(draft ?? {}) as Fields, (active ?? {}) as Fields]
  const fields = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((field) => !NO_CONTENT.has(field)).sort()
  return fields
    .filter((field) => {
      const [x, y] = OWN_OBJECTS.has(field) ? [a[field], b[field]] : [bare(a[field]), bare(b[field])]
      return differs(x, y)
    })
    .map((field) => ({ field, draft: a[field] ?? null, active: b[field] ?? null }))
}

/** Reduces every reference in a value to its href. `exclusion: false` counts as absent. */
const bare = (value: unknown): unknown =>
  withoutFalseExclusions(value, (object) => (typeof object.href === 'string' ? { href: object.href } : object))

/**
 * Copies a value without any `exclusion: false`, which means the same as no `exclusion`. `reduce` is applied to each
 * object in the value first.
 */
export function withoutFalseExclusions(value: unknown, reduce = (object: Fields): Fields => object): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutFalseExclusions(item, reduce))
  if (typeof value !== 'object' || value === null) return value
  const said = Object.entries(reduce(value as Fields)).filter(
    ([field, inner]) => field !== 'exclusion' || inner === true,
  )
  return Object.fromEntries(said.map(([field, inner]) => [field, withoutFalseExclusions(inner, reduce)]))
}

/**
 * Returns a string that is equal for two list items with the same meaning, however the PCE wrote them: references count
 * by href alone, and fields without content, such as `exclusion: false`, count as absent.
 */
export const keyOfItem = (item: unknown): string => JSON.stringify(sortedContent(bare(item)))

function sortedContent(value: unknown): unknown {
  if (typeof value === 'string') return toDraftHref(value)
  if (Array.isArray(value)) return value.map(sortedContent)
  if (typeof value !== 'object' || value === null) return value
  const said = Object.entries(value).filter(([, inner]) => inner != null && inner !== '')
  return said.sort(([a], [b]) => (a < b ? -1 : 1)).map(([field, inner]) => [field, sortedContent(inner)])
}

/** Returns true if two values differ in meaning. */
export function differs(a: unknown, b: unknown): boolean {
  const isEmpty = (value: unknown) => value == null || value === '' || (Array.isArray(value) && value.length === 0)
  if (isEmpty(a) && isEmpty(b)) return false
  // Both directions are compared, because findDifferences ignores additional content of its second argument.
  return findDifferences({ a }, { a: b }).length > 0 || findDifferences({ a: b }, { a }).length > 0
}
