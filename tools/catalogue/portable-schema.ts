import { type Portable, shareParts } from './share-parts.js'

/** A schema as TypeBox creates it. */
interface Schema {
  [keyword: string]: unknown
  type?: unknown
  anyOf?: Schema[]
  enum?: unknown[]
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: unknown
  items?: Schema
  description?: string
  /** The description that tools/list shows instead of the documented one. Empty if the name says enough. */
  listed?: string
}

/**
 * Reduces the schema of a tool's arguments to what a model needs in order to write them, in the portable core:
 *
 * - Of alternatives, only the first is listed, because converters drop `anyOf` or refuse it. The server accepts the
 *   others as well. So the first alternative must be the form in which everything can be said.
 * - Defaults become words of the description. Numbers, false, free text and what narrows nothing (`all`, `both`) are
 *   left out, because a caller can omit an argument without knowing its default, and the answers say what was read.
 * - Bounds and patterns are left out: they hardly ever matter, and are named in the errors. `additionalProperties` is
 *   kept only at the top level.
 * - A description is left out if a model knows what it says from the names of the arguments or from the instructions.
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
      const form = firstForm(schema)
      const { description: documented = '', listed: description = documented } = form
      const isKnown = description === '' || isEvident(description, name) || (hasExact && description === PART)
      const said = [...(isKnown ? [] : [description]), ...wordsOfDefault(form)].join('; ')
      return [name, { ...(said !== '' && { description: said }), ...formOf(form, name) }]
    }),
  )
}

/** Returns the first alternative of a schema, at every depth of nested unions, with the union's other properties. */
function firstForm({ anyOf, ...beside }: Schema): Schema {
  return anyOf === undefined ? beside : { ...firstForm(anyOf[0]!), ...beside }
}

function formOf(schema: Schema, where: string): Portable {
  const { type, enum: values, default: own, items, properties, required } = firstForm(schema)
  if (values !== undefined)
    return { type: 'string', enum: USUAL_DEFAULTS.has(own) ? values.filter((one) => one !== own) : values }
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
  if (own === undefined || own === false || typeof own === 'number' || USUAL_DEFAULTS.has(own)) return []
  if (type === 'string' && values === undefined) return []
  return [`default ${(Array.isArray(own) ? own : [own]).join(', ')}`]
}

/**
 * Default values that narrow nothing or that the instructions explain. They are not listed as values either, because
 * leaving out the argument has the same effect.
 */
const USUAL_DEFAULTS: ReadonlySet<unknown> = new Set(['all', 'both', 'compact', 'draft', 'recorded', 'standard'])

/**
 * The description of a filter by a part of a string, for tools whose argument `exact` says what the filter compares
 * otherwise.
 */
const PART = 'Contains'

/**
 * Arguments of several tools whose names tell a model as much as their descriptions, each with its description. For an
 * argument of a single tool, its schema says so (`listed`).
 */
const EVIDENT: ReadonlySet<string> = new Set([
  'app_name: app label',
  'consumer: Source',
  'consumers: Replace the sources',
  'cursor: next_cursor',
  'description: Text',
  'destination: As source',
  'dry_run: No write',
  'enabled: Switched on',
  'end_date: To',
  'env_name: env label',
  'fields: Only these',
  'kinds: Only these',
  'labels: One per key',
  'max_results: Page size',
  'name: Also its host name',
  'name: New name',
  'new_name: Rename',
  'online: VEN heartbeat',
  'process_name: Program',
  'provider: Destination',
  'providers: Replace the destinations',
  'query_name: Job name',
  'service_ports: Ports and protocols',
  'start_date: From',
  'to_ip: Last',
  'to_port: Last',
  'value: New value',
  'windows_egress_services: Windows consumers',
  'windows_services: Windows providers',
])

/**
 * Arguments of several tools that the instructions explain once for all tools, each with its description. A test checks
 * that the instructions mention them.
 */
export const IN_INSTRUCTIONS: Readonly<Record<string, string>> = {
  complete: 'Past row limit',
  exact: 'Not parts',
  href: 'Or name',
  ingress_services: 'By port and proto, service or href',
  labels: 'Has all of these; labelgroup:NAME too',
  name: 'If unique',
  policy_version: 'draft (default), active, number',
  proto: '6 tcp …',
  ruleset_name: 'If unique',
  service: 'Name',
}

/** Returns true if a description adds nothing to the argument's name and the instructions. */
function isEvident(description: string, name: string): boolean {
  const words = name.split('_')
  const said = description.toLowerCase().split(' ')
  return (
    EVIDENT.has(`${name}: ${description}`) ||
    IN_INSTRUCTIONS[name] === description ||
    (name === 'detail_level' && description.startsWith(FULL)) ||
    said.every((word) => words.includes(word))
  )
}

/**
 * Descriptions of `detail_level` that begin like this are left out of tools/list, because the instructions explain the
 * argument for all tools.
 */
const FULL = 'full: '

/** Any JSON value. `{}` would mean the same, but converters reject it or take it for an object. */
const ANY_VALUE: Portable = {
  anyOf: ['string', 'number', 'boolean', 'object', 'array', 'null'].map((type) => ({ type })),
}

/**
 * Reduces the schema of a tool's answer to types, in the portable core. Field descriptions are only in docs/tools.md,
 * because they would make up a fifth of the answer to tools/list. A part that occurs several times is defined once.
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

/**
 * Merges alternatives, including nested ones, and removes duplicates. If one of them is any value, so is the result.
 */
function alternatives(variants: readonly Portable[]): Portable {
  if (variants.includes(ANY_VALUE)) return ANY_VALUE
  const flat = variants.flatMap((variant) => variant.anyOf ?? [variant])
  const texts = flat.map((variant) => JSON.stringify(variant))
  const anyOf = flat.filter((_, at) => texts.indexOf(texts[at]!) === at)
  return anyOf.length === 1 ? anyOf[0]! : { anyOf }
}

/** The pattern that TypeBox writes into the schema of an object with arbitrary property names. */
const ANY_NAME = '^(.*)$'

/** Returns the fields in the schema of an object: by name or, if names are arbitrary, by type. */
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
