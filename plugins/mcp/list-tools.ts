import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { annotationsOf, type AnyTool, describe, titleOf } from '../../tools/define.js'

/**
 * One entry of tools/list, in as few bytes as say the same to a model: every conversation pays for the list. The JSON round trip
 * leaves TypeBox's symbols behind, once, so that no answer has to.
 */
export function listTool(tool: AnyTool): Tool {
  const entry = {
    name: tool.name,
    title: titleOf(tool),
    description: describe(tool),
    inputSchema: compactSchema(withoutBounds(tool.input)),
    outputSchema: shareParts(compactSchema(typesOnly(tool.output)) as Record<string, unknown>),
    annotations: annotationsOf(tool),
  }
  return JSON.parse(JSON.stringify(entry)) as Tool
}

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
function without(
  schema: unknown,
  drops: (keyword: string, value: unknown, part: object) => boolean,
  isMap = false,
): unknown {
  if (Array.isArray(schema)) return schema.map((one) => without(one, drops))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (!isMap && drops(name, value, schema)) return []
      const isPropertyMap = !isMap && (name === 'properties' || name === 'patternProperties')
      return [[name, without(value, drops, isPropertyMap)]]
    }),
  )
}

/** Outputs are typed at every depth; what their fields mean is in docs/tools.md, since it would be a fifth of the list. */
const typesOnly = (schema: unknown): unknown => without(schema, (keyword) => keyword === 'description')

const BOUNDS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'pattern']

/**
 * What a model needs to write arguments. How long a text or list and how large a number may be is checked here and named in the
 * error; in a list that is read with every conversation such bounds, which hardly anyone meets, are a tenth. So are a default of
 * false, those of free text, which nobody has to know to leave them out, and that unknown properties are refused, which is said of
 * the arguments as a whole.
 */
const withoutBounds = (schema: object): unknown =>
  without(
    schema,
    (keyword, value, part) =>
      BOUNDS.includes(keyword) ||
      (keyword === 'additionalProperties' && part !== schema) ||
      (keyword === 'default' && (value === false || (typeof value === 'string' && !('enum' in part)))),
  )

/** Shorter parts than this are not worth the two references and the definition. */
const MIN_BYTES = 90

/**
 * The same schema with the parts that occur more than once defined once (`$defs`, JSON Schema 2020-12, core 8.2.4). The answer about
 * two directions of traffic has every one of its lists twice.
 */
function shareParts(schema: Schema): Schema {
  const counts = new Map<string, number>()
  const count = (part: unknown) => {
    if (!isPart(part)) return forEachPart(part, count)
    const text = JSON.stringify(part)
    const before = counts.get(text) ?? 0
    counts.set(text, before + 1)
    // What is inside a part that occurred before is shared with it.
    if (before === 0) forEachPart(part, count)
  }
  forEachPart(schema, count)

  const definitions: Schema = {}
  const names = new Map<string, string>()
  const share = (part: unknown): unknown => {
    if (!isPart(part)) return mapParts(part, share)
    const text = JSON.stringify(part)
    if ((counts.get(text) ?? 0) < 2 || text.length < MIN_BYTES) return mapParts(part, share)
    let name = names.get(text)
    if (name === undefined) {
      names.set(text, (name = `p${names.size + 1}`))
      definitions[name] = mapParts(part, share)
    }
    return { $ref: `#/$defs/${name}` }
  }
  const shared = mapParts(schema, share) as Schema
  return names.size === 0 ? shared : { ...shared, $defs: definitions }
}

/** A schema that can stand behind a reference: of an object or of a list. */
const isPart = (value: unknown): value is Schema =>
  typeof value === 'object' &&
  value !== null &&
  'type' in value &&
  (typeof value.type === 'string' || Array.isArray(value.type)) &&
  ('properties' in value || 'items' in value)

function forEachPart(value: unknown, visit: (inner: unknown) => void): void {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
}

function mapParts(value: unknown, change: (inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))
}
