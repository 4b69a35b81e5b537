import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { LISTED_SCHEMAS, type ListedSchemas } from './listed-schemas.js'
import { annotationsOf, type AnyTool, describe, titleOf } from '../../tools/define.js'

/**
 * Returns one entry of tools/list. The entry is as short as possible without losing meaning for a model, because the
 * list is part of every conversation.
 */
export function listTool(tool: AnyTool): Tool {
  const known = listed.get(tool)
  if (known !== undefined) return known
  const { inputSchema, outputSchema } = LISTED_SCHEMAS?.[tool.name] ?? listSchemas(tool)
  const entry = {
    name: tool.name,
    title: titleOf(tool),
    description: describe(tool),
    inputSchema,
    outputSchema,
    annotations: annotationsOf(tool),
  }
  listed.set(tool, entry)
  return entry
}

/** The cached entries, by tool. All servers of a process share them. */
const listed = new WeakMap<AnyTool, Tool>()

/**
 * Computes the schemas of an entry. A JSON round trip removes TypeBox's symbols here, so that this need not be done for
 * each answer.
 */
export function listSchemas(tool: Pick<AnyTool, 'input' | 'output'>): ListedSchemas {
  const schemas = {
    inputSchema: compactSchema(withoutBounds(tool.input)),
    outputSchema: shareParts(compactSchema(typesOnly(tool.output)) as Record<string, unknown>),
  }
  return JSON.parse(JSON.stringify(schemas)) as ListedSchemas
}

/**
 * For each type, the keywords that apply only to values of this type. They are ignored for values of other types (JSON
 * Schema 2020-12, validation 6).
 */
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
 * Returns an equivalent schema in fewer bytes. Alternatives that differ only in type become one schema with a list of
 * types, at every depth: `anyOf [{type: string}, {type: null}]` means the same as `type: [string, null]`. Without this,
 * such alternatives would make up a third of some output schemas.
 */
export function compactSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compactSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, compactSchema(value)]),
  ) as Schema
  shortenMap(inner)
  const merged = Array.isArray(inner.anyOf) && inner.type === undefined ? mergeTypes(inner.anyOf) : null
  if (merged === null) return inner
  const { anyOf: _alternatives, ...rest } = inner
  const clash = Object.keys(rest).some((keyword) => keyword in merged)
  return clash ? inner : { ...merged, ...rest }
}

/** The pattern that TypeBox writes into the schema of an object with arbitrary property names. */
const ANY_NAME = '^(.*)$'

/**
 * Replaces the pattern in the schema of an object with arbitrary property names with `additionalProperties`, which is
 * shorter.
 */
function shortenMap(schema: Schema): void {
  const patterns = schema.patternProperties as Record<string, unknown> | undefined
  const isMap = schema.type === 'object' && schema.properties === undefined && patterns?.[ANY_NAME] !== undefined
  if (!isMap || schema.additionalProperties !== undefined || Object.keys(patterns).length > 1) return
  schema.additionalProperties = patterns[ANY_NAME]
  delete schema.patternProperties
}

/**
 * Merges alternative schemas into one schema with a list of types. Returns null unless their types differ and each
 * alternative has only keywords that apply to its own type.
 */
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
  // `integer` and `number` are not merged: every integer is also a number, so the bounds of one alternative would apply
  // to the other.
  if (types.includes('integer') && types.includes('number')) return null
  return { type: types, ...keywords }
}

/**
 * Returns a copy of a schema without the keywords for which `drops` returns true, at every depth. A property whose name
 * equals such a keyword is kept.
 */
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

/**
 * Reduces an output schema to types. The descriptions of the fields are only in docs/tools.md, because they would make
 * up a fifth of the answer to tools/list. Empty `properties` are left out, because they say nothing about an object
 * that may have any fields.
 */
const typesOnly = (schema: unknown): unknown =>
  without(
    schema,
    (keyword, value) =>
      keyword === 'description' || (keyword === 'properties' && Object.keys(value as object).length === 0),
  )

const BOUNDS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'pattern']

/**
 * Reduces an input schema to what a model needs in order to write arguments. Bounds and patterns are left out: they
 * would make up a tenth of the answer to tools/list, hardly ever matter, and are named in the errors. A default of
 * false, the default level of detail (`standard`) and the defaults of free text are left out, because a caller can omit
 * an argument without knowing its default. `additionalProperties` is kept only at the top level.
 */
const withoutBounds = (schema: object): unknown =>
  without(
    schema,
    (keyword, value, part) =>
      BOUNDS.includes(keyword) ||
      (keyword === 'additionalProperties' && part !== schema) ||
      (keyword === 'default' &&
        (value === false || value === 'standard' || (typeof value === 'string' && !('enum' in part)))),
  )

/**
 * The size, in bytes, of a reference to a shared part of a schema, and the size of the part's definition without the
 * part itself.
 */
const REFERENCE_BYTES = 23
const DEFINITION_BYTES = 20

/**
 * Returns true if a part of a schema takes fewer bytes when it is defined once and referred to everywhere. `length` is
 * the length of the part, and `times` is the number of its occurrences.
 */
const isWorthSharing = (length: number, times: number): boolean =>
  (times - 1) * length > times * REFERENCE_BYTES + DEFINITION_BYTES

/**
 * Returns an equivalent schema in which each part that occurs several times is defined only once (`$defs`, JSON Schema
 * 2020-12, core 8.2.4). For example, an answer about two directions of traffic contains each of its lists twice.
 */
function shareParts(schema: Schema): Schema {
  const counts = new Map<string, number>()
  const count = (part: unknown) => {
    if (!isPart(part)) return forEachPart(part, count)
    const text = JSON.stringify(part)
    const before = counts.get(text) ?? 0
    counts.set(text, before + 1)
    // If a repeated part is moved, the parts inside it move with it and need no definitions of their own.
    if (before === 0) forEachPart(part, count)
  }
  forEachPart(schema, count)

  const definitions: Schema = {}
  const names = new Map<string, string>()
  const share = (part: unknown): unknown => {
    if (!isPart(part)) return mapParts(part, share)
    const text = JSON.stringify(part)
    if (!isWorthSharing(text.length, counts.get(text) ?? 0)) return mapParts(part, share)
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

/**
 * Returns true if a value is a schema that may be replaced by a reference: the schema of an object with properties, or
 * of a list with items.
 */
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
