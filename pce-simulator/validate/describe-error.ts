import { ValueErrorType, type ValueError } from '@sinclair/typebox/errors'
import type { TSchema } from '@sinclair/typebox'

/** Returns the JSON type of a value, in the words of the PCE's messages. */
function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function property(path: string): string {
  return `The property '#${path === '' ? '/' : path}'`
}

/**
 * Describes the violations of a request schema in the PCE's words (P31). Several unknown properties of one object count
 * as one violation.
 */
export function describeErrors(errors: readonly ValueError[], schemaName: string): string {
  const inSchema = `in schema ${schemaName}.schema.json`
  const unknown = new Map<string, string[]>()
  const sentences: string[] = []
  for (const error of errors) {
    // A missing property is reported a second time by the schema of its value. This second report is skipped.
    if (error.value === undefined && error.type !== ValueErrorType.ObjectRequiredProperty) continue
    if (error.type === ValueErrorType.ObjectAdditionalProperties) {
      const cut = error.path.lastIndexOf('/')
      const parent = error.path.slice(0, cut)
      unknown.set(parent, [...(unknown.get(parent) ?? []), error.path.slice(cut + 1)])
    } else {
      sentences.push(describe(error, inSchema))
    }
  }
  for (const [parent, names] of unknown) {
    const list = JSON.stringify(names)
    sentences.push(
      `${property(parent)} contains additional properties ${list} outside of the schema when none are allowed ${inSchema}`,
    )
  }
  return sentences.join(', ')
}

function describe(error: ValueError, inSchema: string): string {
  const { schema, value, path } = error
  const at = property(path)
  switch (error.type) {
    case ValueErrorType.ObjectRequiredProperty: {
      const cut = path.lastIndexOf('/')
      return `${property(path.slice(0, cut))} did not contain a required property of '${path.slice(cut + 1)}' ${inSchema}`
    }
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return `${at} did not have a minimum value of ${String(schema.minimum)}, inclusively ${inSchema}`
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return `${at} did not have a maximum value of ${String(schema.maximum)}, inclusively ${inSchema}`
    case ValueErrorType.StringMinLength:
      return `${at} was not of a minimum string length of ${String(schema.minLength)} ${inSchema}`
    case ValueErrorType.StringMaxLength:
      return `${at} was not of a maximum string length of ${String(schema.maxLength)} ${inSchema}`
    case ValueErrorType.ArrayMinItems:
      return `${at} did not contain a minimum number of items ${String(schema.minItems)} ${inSchema}`
    case ValueErrorType.ArrayMaxItems:
      return `${at} had more items than the allowed ${String(schema.maxItems)} ${inSchema}`
    case ValueErrorType.Union:
      return describeUnion(schema, value, at, inSchema)
    case ValueErrorType.Literal:
      return `${at} value ${JSON.stringify(value)} did not match one of the following values: ${String(schema.const)} ${inSchema}`
    default:
      return `${at} of type ${typeName(value)} did not match the following type: ${String(schema.type)} ${inSchema}`
  }
}

function describeUnion(schema: TSchema, value: unknown, at: string, inSchema: string): string {
  const members = schema.anyOf as TSchema[]
  if (members.every((member) => member.const !== undefined)) {
    const values = members.map((member) => String(member.const)).join(', ')
    return `${at} value ${JSON.stringify(value)} did not match one of the following values: ${values} ${inSchema}`
  }
  const types = members.map((member) => String(member.type))
  return new Set(types).size === types.length
    ? `${at} of type ${typeName(value)} did not match one or more of the following types: ${types.join(', ')} ${inSchema}`
    : `${at} of type ${typeName(value)} did not match any of the required schemas ${inSchema}`
}
