import { differs } from '../policy/diff-fields.js'

/**
 * The change of a field. `before` and `after` are the field's old and new values. If an event reports only the list
 * entries that differ, `removed`, `added` and `updated` contain these entries; `updated` entries stayed in the list
 * with other content.
 */
export interface FieldStep {
  field: string
  before?: unknown
  after?: unknown
  removed?: unknown[]
  added?: unknown[]
  updated?: unknown[]
}

type Fields = Record<string, unknown>

/**
 * The keys under which an event reports the change of a list. Each is mapped to the corresponding field of `FieldStep`.
 */
const LIST_CHANGES = { deleted: 'removed', created: 'added', updated: 'updated' } as const

/**
 * Reads the changes in an event. The change of a field may have the form `{before, after}`, `{created, deleted,
 * updated}` or both, possibly inside other fields. Any other value is the new value of the field.
 */
export function stepsOf(changes: unknown): FieldStep[] {
  return isFields(changes) ? Object.entries(changes).flatMap(([field, value]) => stepsIn(field, value)) : []
}

function stepsIn(field: string, value: unknown): FieldStep[] {
  if (!isFields(value)) return [{ field, before: null, after: value }]
  const isPair = 'before' in value || 'after' in value
  const { before = null, after = null } = value
  // If the field had no value before, `after` may contain a list change instead of a value.
  if (isPair && before === null && isListChange(after)) return listSteps(field, after)
  const ofList = isListChange(value, isPair) ? listSteps(field, value) : []
  if (isPair) return [...innermost(field, before, after), ...ofList]
  if (isListChange(value)) return ofList
  if (!isNested(value)) return [{ field, before: null, after: value }]
  return Object.entries(value).flatMap(([name, inner]) => stepsIn(`${field}.${name}`, inner))
}

/**
 * Returns true for an object with at least one of the fields `created`, `deleted` and `updated`. Other fields are
 * allowed only if `besideOthers` is true.
 */
function isListChange(value: unknown, besideOthers = false): value is Fields {
  if (!isFields(value)) return false
  const names = Object.keys(value)
  const known = names.filter((name) => name in LIST_CHANGES)
  return (
    known.length > 0 && (besideOthers || known.length === names.length) && known.every((name) => isEntries(value[name]))
  )
}

/** Returns true if the value may contain the entries of a list change: a list, a single object, or null. */
const isEntries = (value: unknown) => value === null || typeof value === 'object'

function listSteps(field: string, change: Fields): FieldStep[] {
  const told = Object.entries(LIST_CHANGES).flatMap(([name, as]) => {
    const entries = [change[name] ?? []].flat().filter((entry) => entry !== null)
    return entries.length > 0 ? [[as, entries] as const] : []
  })
  return told.length > 0 ? [{ field, ...Object.fromEntries(told) }] : []
}

/** Returns true if an object is not a reference and each of its fields is a change itself. */
const isNested = (value: Fields): boolean =>
  value['href'] === undefined &&
  Object.keys(value).length > 0 &&
  Object.values(value).every(
    (inner) => isFields(inner) && ('before' in inner || 'after' in inner || isListChange(inner) || isNested(inner)),
  )

/**
 * Returns the fields that differ between two objects, with their paths. This is needed because an event may report
 * `agent` as a whole although only `agent.config.mode` changed. Lists, and references to different objects, are not
 * divided further.
 */
function innermost(field: string, before: unknown, after: unknown): FieldStep[] {
  if (!isFields(before) || !isFields(after) || before['href'] !== after['href']) return [{ field, before, after }]
  const inner = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) =>
    differs(before[name], after[name]),
  )
  return inner.flatMap((name) => innermost(`${field}.${name}`, before[name] ?? null, after[name] ?? null))
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
