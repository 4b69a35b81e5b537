import { AUTHORSHIP } from './authorship.js'
import type { FieldChange } from '../../schemas/policy-changes.js'
import { findDifferences } from './compare-stored.js'

/**
 * Fields that do not count as content: those in which the PCE keeps records about an object, and the rules, which are
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
 * Fields that contain whole objects instead of references. These objects are compared in full, because their hrefs do
 * not show a change.
 */
const OWN_OBJECTS = new Set(['ip_tables_rules'])

type Fields = Record<string, unknown>

/**
 * Lists the fields in which a draft differs from the active version, by name. References are compared by href without
 * the policy version, because a new name is a change of the other object. Null and absent are equal, and the order of
 * lists is ignored.
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

/** Reduces references to their hrefs. `exclusion: false` counts as absent. */
const bare = (value: unknown): unknown =>
  withoutFalseExclusions(value, (object) => (typeof object.href === 'string' ? { href: object.href } : object))

/**
 * Copies a value without any `exclusion: false`, which means the same as no `exclusion`. `reduce` is applied to each
 * object inside.
 */
export function withoutFalseExclusions(value: unknown, reduce = (object: Fields): Fields => object): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutFalseExclusions(item, reduce))
  if (typeof value !== 'object' || value === null) return value
  const said = Object.entries(reduce(value as Fields)).filter(
    ([field, inner]) => field !== 'exclusion' || inner === true,
  )
  return Object.fromEntries(said.map(([field, inner]) => [field, withoutFalseExclusions(inner, reduce)]))
}

/** Returns true if two values mean different things. */
export function differs(a: unknown, b: unknown): boolean {
  const isEmpty = (value: unknown) => value == null || value === '' || (Array.isArray(value) && value.length === 0)
  if (isEmpty(a) && isEmpty(b)) return false
  // Each must contain the other, because findDifferences accepts additional content on the stored side.
  return findDifferences({ a }, { a: b }).length > 0 || findDifferences({ a: b }, { a }).length > 0
}
