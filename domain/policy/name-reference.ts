import type { ReferenceNames } from '../inventory/reference-names.js'

/**
 * Returns the name of an object to which a rule refers: `key=value` for a label, and for anything else its name, or its
 * href if it has no name.
 */
export function nameReference(target: unknown, names: ReferenceNames): string | undefined {
  if (typeof target !== 'object' || target === null) return typeof target === 'string' ? target : undefined
  const { href = '', ...own } = target as { href?: string; key?: string; value?: string; name?: string }
  const { key, value, name } = { ...names(href), ...own }
  return key !== undefined && value !== undefined ? `${key}=${value}` : (name ?? href)
}
