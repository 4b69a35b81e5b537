import { differs } from '../policy/diff-fields.js'

/** A field of an object before and after a change. */
export interface FieldStep {
  field: string
  before: unknown
  after: unknown
}

/** Reads changes of the form `{field: {before, after}}`. A value with neither is the new value of the field. */
export function stepsOf(changes: unknown): FieldStep[] {
  if (typeof changes !== 'object' || changes === null) return []
  return Object.entries(changes).flatMap(([field, value]: [string, unknown]) => {
    const step = (typeof value === 'object' && value !== null ? value : {}) as { before?: unknown; after?: unknown }
    if (!('before' in step) && !('after' in step)) return [{ field, before: null, after: value }]
    return innermost(field, step.before ?? null, step.after ?? null)
  })
}

/**
 * Returns the fields that differ within two objects, by their paths. An event may report `agent` as a whole although
 * only `agent.config.mode` changed. Lists, and references to different objects, are returned as a whole.
 */
function innermost(field: string, before: unknown, after: unknown): FieldStep[] {
  if (!isFields(before) || !isFields(after) || before['href'] !== after['href']) return [{ field, before, after }]
  const inner = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) =>
    differs(before[name], after[name]),
  )
  return inner.flatMap((name) => innermost(`${field}.${name}`, before[name] ?? null, after[name] ?? null))
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
