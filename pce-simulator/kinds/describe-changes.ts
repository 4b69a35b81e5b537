import { isDeepStrictEqual } from 'node:util'

/** Describes what a write changed, field by field, in the form in which events report it. */
export function describeChanges(
  before: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, unknown>>,
): Record<string, { before: unknown; after: unknown }> {
  const changes: Record<string, { before: unknown; after: unknown }> = {}
  for (const [name, after] of Object.entries(fields)) {
    const old = before[name] ?? null
    if (!isDeepStrictEqual(old, after)) changes[name] = { before: old, after }
  }
  return changes
}
