import type { TProperties, TSchema } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import { quote } from '../../domain/text/escape-text.js'

/** The fields that say what is missing in a row. They are shown even if they were not requested. */
const ALWAYS = new Set(['omitted', 'deny_rules_error', 'rules_from'])

/** A function that reduces a row to the requested fields, or keeps all fields if none were requested (D131). */
export type Select = <T extends object>(row: T) => Partial<T>

/**
 * Creates the function that reduces rows to the fields in the argument `fields` of a list tool. `row` is the schema of
 * a row in the answer. Any string from a PCE may be null (P43). If a field is null although its schema does not permit
 * that, only this field is left out, so that the answer as a whole does not fail. Throws invalid_argument for a field
 * that does not exist; the error lists the existing fields.
 */
export function selectFields(fields: readonly string[] | undefined, row: { properties: TProperties }): Select {
  const nullable = new Set(Object.keys(row.properties).filter((name) => takesNull(row.properties[name] as TSchema)))
  const isTold = ([name, value]: [string, unknown]) => value !== null || nullable.has(name)
  if (fields === undefined) {
    return (whole) => (Object.entries(whole).every(isTold) ? whole : pick(whole, isTold))
  }
  requireFields(fields, Object.keys(row.properties))
  const wanted = new Set(fields)
  return (whole) => pick(whole, (field) => (wanted.has(field[0]) || ALWAYS.has(field[0])) && isTold(field))
}

const pick = <T extends object>(whole: T, isWanted: (field: [string, unknown]) => boolean) =>
  Object.fromEntries(Object.entries(whole).filter(isWanted)) as Partial<T>

/** Returns true if a schema permits null. A schema without a type permits any value. */
const takesNull = ({ type, anyOf }: TSchema): boolean =>
  Array.isArray(anyOf) ? anyOf.some((one: TSchema) => takesNull(one)) : type === undefined || type === 'null'

/**
 * Throws invalid_argument if `fields` is empty or contains a field that is not in `known`; the error lists the fields
 * in `known`.
 */
export function requireFields(fields: readonly string[], known: readonly string[]): void {
  if (fields.length === 0) {
    const text = 'fields is empty, which would be rows of nothing. Leave it out for all fields.'
    throw new ToolError('invalid_argument', text, { argument: 'fields', known_fields: known })
  }
  const unknown = fields.filter((field) => !known.includes(field))
  if (unknown.length === 0) return
  const near = [...new Set(unknown.flatMap((field) => nearNames(field, known, 1)))]
  const meant = near.length === 0 ? '' : ` Did you mean ${near.map(quote).join(', ')}?`
  const text = `No row has the field ${unknown.map(quote).join(', ')}.${meant} Fields: ${known.join(', ')}.`
  throw new ToolError('invalid_argument', text, { argument: 'fields', unknown_fields: unknown, known_fields: known })
}
