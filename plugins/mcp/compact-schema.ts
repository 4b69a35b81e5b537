/** Keywords that say something about values of one type only, so that a value of another type passes them by (JSON Schema 2020-12, validation 6). */
const TYPED: Record<string, readonly string[]> = {
  string: ['minLength', 'maxLength', 'pattern'],
  integer: ['minimum', 'maximum'],
  number: ['minimum', 'maximum'],
  array: ['items', 'minItems', 'maxItems', 'uniqueItems'],
  object: ['properties', 'required', 'additionalProperties', 'patternProperties'],
  boolean: [],
  null: [],
}

interface Schema {
  [keyword: string]: unknown
  type?: unknown
  anyOf?: unknown[]
}

/**
 * The same schema in fewer bytes: alternatives that differ in type alone become one schema with a list of types, at every depth.
 * `anyOf [{type: string}, {type: null}]` is a third of what a model reads of some answers, and says no more than
 * `type: [string, null]`.
 */
export function compactSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compactSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, compactSchema(value)]),
  ) as Schema
  const merged = Array.isArray(inner.anyOf) && inner.type === undefined ? mergeTypes(inner.anyOf) : null
  if (merged === null) return inner
  const { anyOf: _alternatives, ...rest } = inner
  const clash = Object.keys(rest).some((keyword) => keyword in merged)
  return clash ? inner : { ...merged, ...rest }
}

/** One schema for alternatives of distinct types with keywords of their own type only; null where they are not that. */
function mergeTypes(alternatives: readonly unknown[]): Schema | null {
  const types: string[] = []
  const keywords: Schema = {}
  for (const alternative of alternatives as Schema[]) {
    const { type, ...own } = alternative
    const list = (Array.isArray(type) ? type : [type]) as (string | undefined)[]
    const allowed = list.flatMap((name) => (name === undefined ? [] : (TYPED[name] ?? [])))
    const fits = list.every((name) => name !== undefined && name in TYPED && !types.includes(name))
    const clash = Object.keys(own).some((keyword) => !allowed.includes(keyword) || keyword in keywords)
    if (!fits || clash) return null
    types.push(...(list as string[]))
    Object.assign(keywords, own)
  }
  // Every integer is a number: side by side, the bounds of one would bind the other.
  if (types.includes('integer') && types.includes('number')) return null
  return { type: types, ...keywords }
}

/** The same schema without some keywords, at every depth. Properties that are called like one of them stay. */
function without(schema: unknown, drops: (keyword: string, value: unknown) => boolean, isMap = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => without(one, drops))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (!isMap && drops(name, value)) return []
      const isPropertyMap = !isMap && (name === 'properties' || name === 'patternProperties')
      return [[name, without(value, drops, isPropertyMap)]]
    }),
  )
}

/** Outputs are typed at every depth; what their fields mean stands in the documentation, which would be a fifth of the list. */
export const typesOnly = (schema: unknown): unknown => without(schema, (keyword) => keyword === 'description')

const LENGTHS = ['minLength', 'maxLength', 'maxItems', 'pattern']

/**
 * What a model needs to write arguments. How long a text or list may be is checked here and named in the error; in a list that is
 * read with every conversation such bounds, which hardly anybody meets, are a twentieth. So is a default of false.
 */
export const withoutLengths = (schema: unknown): unknown =>
  without(schema, (keyword, value) => LENGTHS.includes(keyword) || (keyword === 'default' && value === false))
