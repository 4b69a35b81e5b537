import { toDraftHref } from './parse-href.js'

/** Whether `{href}` of an object stands anywhere inside a value, in any policy version. `href` is a draft href. */
export function pointsAt(value: unknown, href: string): boolean {
  if (Array.isArray(value)) return value.some((item) => pointsAt(item, href))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([field, inner]) =>
    field === 'href' && typeof inner === 'string' ? toDraftHref(inner) === href : pointsAt(inner, href),
  )
}
