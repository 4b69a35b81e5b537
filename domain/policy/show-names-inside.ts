import type { ReferenceNames } from '../inventory/reference-names.js'

/** A JSON value with key and value, or name, beside every `{href}` inside it that has a known one. */
export function showNamesInside<T>(value: T, names: ReferenceNames): T {
  return show(value, names) as T
}

function show(value: unknown, names: ReferenceNames): unknown {
  if (Array.isArray(value)) return value.map((item) => show(item, names))
  if (typeof value !== 'object' || value === null) return value
  const shown = Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, show(inner, names)]))
  return typeof shown.href === 'string' ? { ...names(shown.href), ...shown } : shown
}
