import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Test } from 'tap'
import { KIND_SCHEMAS } from '../../../schemas/pce/kinds.js'
import { camelCase } from './names.js'

/** Each object passes the kind's schema and has the fields that every read of the kind has. */
export function checkObjects(t: Test, kind: string, objects: readonly object[], fields: readonly string[]): void {
  const schema = (KIND_SCHEMAS as Record<string, TSchema>)[camelCase(kind)]
  if (!schema) return void t.fail(`there is a schema of ${kind}`)
  t.strictSame(
    objects.flatMap((object) => problemsOf(schema, object, fields)),
    [],
    `${kind}: ${objects.length} objects pass the schema, with ${fields.join(', ')}`,
  )
}

function problemsOf(schema: TSchema, object: object, fields: readonly string[]): string[] {
  const texts = fields.filter((field) => typeof (object as Record<string, unknown>)[field] === 'string')
  return [
    ...errorsOf(schema, object),
    ...fields.filter((field) => !(field in object)).map((field) => `${field} is missing`),
    ...(Value.Check(schema, { ...object, of_a_later_release: 1 }) ? [] : ['a field of a later release is refused']),
    ...texts
      .filter((field) => Value.Check(schema, { ...object, [field]: { no: 'text' } }))
      .map((field) => `${field} may be an object instead of a text`),
  ]
}

export function checkValue(t: Test, schema: TSchema, value: unknown, what: string): void {
  t.strictSame(errorsOf(schema, value), [], `${what}: passes its schema`)
}

function errorsOf(schema: TSchema, value: unknown): string[] {
  return [...Value.Errors(schema, value)]
    .slice(0, 3)
    .map(({ path, message, value: found }) => `${path}: ${message}, not ${JSON.stringify(found)?.slice(0, 80)}`)
}
