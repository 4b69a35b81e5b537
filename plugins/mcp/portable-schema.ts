import { type Portable, shareParts } from './share-parts.js'

/** A schema as TypeBox makes it. */
interface Schema {
  [keyword: string]: unknown
  type?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: unknown
  items?: Schema
  description?: string
}

/**
 * Reduces the schema of a tool's arguments to what a model needs in order to write them, in the portable core:
 *
 * - Of alternatives, only the first is listed, because converters drop `anyOf` or refuse it. The server accepts the
 *   others as well. So the first alternative must be the form in which everything can be said.
 * - Defaults become words of the description. A default of false, the default level of detail (`standard`) and the
 *   defaults of free text are left out, because a caller can omit an argument without knowing its default.
 * - Bounds and patterns are left out: they hardly ever matter, and are named in the errors. `additionalProperties` is
 *   kept only at the top level.
 * - A description is left out if a model knows what it says from the names of the arguments.
 *
 * Throws TypeError for a schema that has no portable form, such as an object without properties.
 */
export function portableInput(schema: object): Portable {
  const { additionalProperties, properties = {}, required } = schema as Schema
  return {
    ...(additionalProperties === false && { additionalProperties }),
    type: 'object',
    ...(required !== undefined && { required }),
    properties: argumentsOf(properties),
  }
}

function argumentsOf(properties: Record<string, Schema>): Record<string, Portable> {
  const hasExact = 'exact' in properties
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const listed = firstForm(schema)
      const { description = '' } = listed
      const isKnown = description === '' || isEvident(description, name) || (hasExact && description === PART)
      const said = [...(isKnown ? [] : [description]), ...wordsOfDefault(listed)].join('; ')
      return [name, { ...(said !== '' && { description: said }), ...formOf(listed, name) }]
    }),
  )
}

/** Returns the first alternative of a schema, at every depth of nested unions, with what the union says beside it. */
function firstForm({ anyOf, ...beside }: Schema): Schema {
  return anyOf === undefined ? beside : { ...firstForm(anyOf[0]!), ...beside }
}

function formOf(schema: Schema, where: string): Portable {
  const { type, enum: values, items, properties, required } = firstForm(schema)
  if (values !== undefined) return { type: 'string', enum: values }
  switch (type) {
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return { type }
    case 'array':
      if (items !== undefined) return { type, items: formOf(items, where) }
      break
    case 'object':
      if (properties !== undefined)
        return { type, ...(required !== undefined && { required }), properties: argumentsOf(properties) }
  }
  throw new TypeError(`the schema of ${where} has no portable form: ${JSON.stringify(schema)}`)
}

function wordsOfDefault({ type, enum: values, default: own }: Schema): string[] {
  if (own === undefined || own === false || own === 'standard' || (type === 'string' && values === undefined)) return []
  return [`default ${(Array.isArray(own) ? own : [own]).join(', ')}`]
}

/** The description of a text filter, beside which `exact` says what the filter compares otherwise. */
const PART = 'Contains'

/** Descriptions of arguments that many tools have and whose names say the same to a model. */
const EVIDENT: Readonly<Record<string, string>> = {
  app_name: 'app label',
  env_name: 'env label',
  start_date: 'From',
  end_date: 'To',
  fields: 'Only these',
  max_results: 'Page size',
  cursor: 'next_cursor',
  description: 'Text',
  enabled: 'Switched on',
  new_name: 'Rename',
  process_name: 'Program',
  to_port: 'Last',
  to_ip: 'Last',
  query_name: 'Job name',
  dry_run: 'No write',
}

/** Returns true if a description says nothing that the name does not say. */
function isEvident(description: string, name: string): boolean {
  const words = name.split('_')
  const said = description.toLowerCase().split(' ')
  return EVIDENT[name] === description || said.every((word) => words.includes(word))
}

/** Any JSON value. `{}` would say the same, but converters refuse it or take it for an object. */
const ANY_VALUE: Portable = {
  anyOf: ['string', 'number', 'boolean', 'object', 'array', 'null'].map((type) => ({ type })),
}

/**
 * Reduces the schema of a tool's answer to types, in the portable core. The descriptions of the fields are only in
 * docs/tools.md, because they would make up a fifth of the answer to tools/list. A part that occurs several times is
 * defined once.
 */
export const portableOutput = (schema: object): Portable => shareParts(typesOf(schema as Schema))

function typesOf(schema: Schema): Portable {
  const { type, anyOf, const: only, enum: values = only === undefined ? undefined : [only], items } = schema
  if (anyOf !== undefined) return alternatives(anyOf.map(typesOf))
  if (typeof type !== 'string') return ANY_VALUE
  if (values !== undefined) return { type, enum: values }
  if (type === 'array') return { type, ...(items !== undefined && { items: typesOf(items) }) }
  return type === 'object' ? { type, ...fieldsOf(schema) } : { type }
}

/** Joins alternatives, those inside of them included. What is there twice, or is any value, is there once. */
function alternatives(variants: readonly Portable[]): Portable {
  if (variants.includes(ANY_VALUE)) return ANY_VALUE
  const flat = variants.flatMap((variant) => variant.anyOf ?? [variant])
  const texts = flat.map((variant) => JSON.stringify(variant))
  const anyOf = flat.filter((_, at) => texts.indexOf(texts[at]!) === at)
  return anyOf.length === 1 ? anyOf[0]! : { anyOf }
}

/** The pattern that TypeBox writes into the schema of an object with arbitrary property names. */
const ANY_NAME = '^(.*)$'

/** Returns what the schema of an object says about its fields: their names, or of arbitrary names the type. */
function fieldsOf({ required, properties = {}, patternProperties = {}, additionalProperties }: Schema): Portable {
  const others = patternProperties[ANY_NAME] ?? additionalProperties
  const ofOthers = typeof others === 'object' && others !== null ? typesOf(others as Schema) : ANY_VALUE
  return {
    ...(required !== undefined && { required }),
    ...(Object.keys(properties).length > 0 && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, typesOf(field)])),
    }),
    ...(ofOthers !== ANY_VALUE && { additionalProperties: ofOthers }),
  }
}
