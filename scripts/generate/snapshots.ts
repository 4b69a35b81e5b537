import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import type { Generator } from './generator.js'
import { surfaceOf } from './tool-surface.js'

const FOLDER = 'test/snapshots'

/**
 * Generates test/snapshots: one file with the public surface of each tool, so that changes to it are visible in
 * reviews.
 */
export const snapshots: Generator = {
  folders: [FOLDER],
  files() {
    return new Map(tools.map((tool) => [`${FOLDER}/${tool.name}.txt`, renderSnapshot(tool)]))
  },
}

/** The JSON Schema keywords that tools use. */
interface Schema {
  type?: string | string[]
  description?: string
  enum?: unknown[]
  const?: unknown
  default?: unknown
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  $ref?: string
  $defs?: Record<string, Schema>
}

/** Renders the whole surface of a tool, with one property per line. */
export function renderSnapshot(tool: AnyTool): string {
  const surface = JSON.parse(JSON.stringify(surfaceOf(tool))) as ReturnType<typeof surfaceOf>
  const { name, title, description, annotations, inputSchema, outputSchema, roles, ...gates } = surface
  const lines = [
    `${name} (${title})`,
    `  ${description}`,
    `  roles: ${roles.join(', ')}`,
    `  gates: ${listed(gates)}`,
    `  annotations: ${listed(annotations ?? {})}`,
    '',
    ...renderRoot('input', inputSchema),
    '',
    ...renderRoot('output', outputSchema as Schema),
  ]
  return `${lines.join('\n')}\n`
}

const listed = (facts: object) =>
  Object.entries(facts)
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`)
    .join(', ')

/** Renders an object by its properties, followed by the shared parts that several of them refer to. */
function renderRoot(title: string, { $defs: parts = {}, ...schema }: Schema): string[] {
  const shared = Object.entries(parts).flatMap(([name, part]) => [
    `${title} ${name}${said(part)}`,
    ...inside(part, '  '),
  ])
  return [`${title}${said(schema)}`, ...inside(schema, '  '), ...shared]
}

/** Renders the description of a schema for its line. */
function said(schema: Schema): string {
  const { description } = schema
  return `: ${typeOf(schema)}${description === undefined ? '' : ` — ${description}`}`
}

/** The maximum length of an object that is shown on the line of its property. */
const LONGEST_INLINE = 80

/** Renders an object with few simple properties on one line; undefined for any other object. */
function inlined(schema: Schema): string | undefined {
  const { properties, patternProperties = {}, additionalProperties } = schema
  const all = Object.values({ ...properties, ...patternProperties })
  if (all.length === 0 || typeof additionalProperties === 'object') return undefined
  if (all.some((one) => one.description !== undefined || one.anyOf !== undefined || inside(one, '').length > 0))
    return undefined
  const text = `{ ${ownOf(schema)
    .map(([name, one]) => name + said(one))
    .join(', ')} }`
  return text.length <= LONGEST_INLINE ? text : undefined
}

/** Renders the type with everything in the schema except descriptions, properties and which of them are required. */
function typeOf(schema: Schema): string {
  const { type, enum: values, const: only, default: usual, items, anyOf, $ref: reference, ...rest } = schema
  const { description: _said, properties: _own, required: _required, patternProperties: _any, ...others } = rest
  const { additionalProperties, ...bounds } = others
  const types = [type ?? []]
    .flat()
    .map((one) =>
      one === 'array' && items !== undefined
        ? `array<${typeOf(items)}>`
        : one === 'object'
          ? (inlined(schema) ?? one)
          : one,
    )
  const kinds = [
    ...(reference === undefined ? [] : [reference.replace('#/$defs/', '')]),
    ...(values === undefined ? types : values.map((value) => JSON.stringify(value))),
    ...(only === undefined ? [] : [JSON.stringify(only)]),
    ...(anyOf === undefined ? [] : anyOf.map(typeOf)),
  ]
  const more = [
    ...(usual === undefined ? [] : [`= ${JSON.stringify(usual)}`]),
    ...(additionalProperties === false ? ['(no others)'] : []),
    ...Object.entries(bounds).map(([key, value]) => `(${key} ${JSON.stringify(value)})`),
  ]
  return [kinds.length === 0 ? 'anything' : kinds.join(' | '), ...more].join(' ')
}

/** Lists the properties of a schema by name, with a question mark for optional ones. */
function ownOf({
  properties = {},
  patternProperties = {},
  required = [],
  additionalProperties,
}: Schema): [string, Schema][] {
  return [
    ...Object.entries(properties).map(([name, one]): [string, Schema] => [
      required.includes(name) ? name : `${name}?`,
      one,
    ]),
    ...Object.entries(patternProperties).map(([pattern, one]): [string, Schema] => [
      pattern === '^(.*)$' ? '*' : pattern,
      one,
    ]),
    ...(typeof additionalProperties === 'object' ? [['*', additionalProperties] as [string, Schema]] : []),
  ]
}

/** Renders the lines below a schema: its properties, or those of its elements and alternatives. */
function inside(schema: Schema, indent: string): string[] {
  const { items, anyOf = [] } = schema
  const own = inlined(schema) === undefined ? ownOf(schema) : []
  return [
    ...own.flatMap(([name, one]) => [`${indent}${name}${said(one)}`, ...inside(one, `${indent}  `)]),
    ...(items === undefined ? [] : inside(items, indent)),
    ...anyOf.flatMap((choice) => inside(choice, indent)),
  ]
}
