import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Test } from 'tap'
import { KIND_SCHEMAS } from '../../../schemas/pce/kinds.js'
import { camelCase } from './names.js'

/** The object passes the kind's schema and has the fields that every read of the kind has. */
export function checkObject(t: Test, kind: string, object: object, fields: readonly string[]): void {
  const schema = (KIND_SCHEMAS as Record<string, TSchema>)[camelCase(kind)]
  if (!schema) return void t.fail(`there is a schema of ${kind}`)
  checkValue(t, schema, object, kind)
  const missing = fields.filter((field) => !(field in object))
  t.strictSame(missing, [], `${kind}: every read has ${fields.join(', ')}`)
  t.ok(Value.Check(schema, { ...object, of_a_later_release: 1 }), 'fields of later releases are no error')
  const texts = fields.filter((field) => typeof (object as Record<string, unknown>)[field] === 'string')
  t.strictSame(
    texts.filter((field) => Value.Check(schema, { ...object, [field]: { no: 'text' } })),
    [],
    `${kind}: the schema refuses an object where these are texts: ${texts.join(', ')}`,
  )
}

export function checkValue(t: Test, schema: TSchema, value: unknown, what: string): void {
  const problems = [...Value.Errors(schema, value)].slice(0, 3)
  t.strictSame(
    problems.map(
      ({ path, message, value: found }) => `${path}: ${message}, not ${JSON.stringify(found)?.slice(0, 80)}`,
    ),
    [],
    `${what}: passes its schema`,
  )
}
