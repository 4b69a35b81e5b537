import type { FieldChange } from '../../schemas/policy-changes.js'
import { findDifferences } from './compare-stored.js'

/** What the PCE records about an object, and what is compared separately. */
export const NO_CONTENT: ReadonlySet<string> = new Set([
  'href',
  'created_at',
  'created_by',
  'updated_at',
  'updated_by',
  'deleted_at',
  'deleted_by',
  'update_type',
  'caps',
  'usage',
  'rules',
  'deny_rules',
])

/** Lists of whole objects, whose hrefs alone do not tell whether they changed. */
const OWN_OBJECTS = new Set(['ip_tables_rules'])

type Fields = Record<string, unknown>

/**
 * The fields in which a draft differs from what is in force, by name. References compare by href regardless of version, since a
 * new name is a change of another object; null and absent are equal, and list order does not matter.
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

/** References reduced to their hrefs; `exclusion: false` equals an absent one. */
const bare = (value: unknown): unknown =>
  withoutFalseExclusions(value, (object) => (typeof object.href === 'string' ? { href: object.href } : object))

/** A value with each `exclusion: false` left out, which says what its absence says, and each object in it as `reduce` makes it. */
export function withoutFalseExclusions(value: unknown, reduce = (object: Fields): Fields => object): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutFalseExclusions(item, reduce))
  if (typeof value !== 'object' || value === null) return value
  const said = Object.entries(reduce(value as Fields)).filter(
    ([field, inner]) => field !== 'exclusion' || inner === true,
  )
  return Object.fromEntries(said.map(([field, inner]) => [field, withoutFalseExclusions(inner, reduce)]))
}

/** Whether two values mean different things. */
export function differs(a: unknown, b: unknown): boolean {
  const isEmpty = (value: unknown) => value == null || value === '' || (Array.isArray(value) && value.length === 0)
  if (isEmpty(a) && isEmpty(b)) return false
  // Each must contain the other: containing alone allows the stored side to have more.
  return findDifferences({ a }, { a: b }).length > 0 || findDifferences({ a: b }, { a }).length > 0
}
