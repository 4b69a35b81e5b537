import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import type { Generator } from './generator.js'
import { surfaceOf } from './tool-surface.js'

const FOLDER = 'test/snapshots'

/**
 * Generates test/snapshots: one file with the public surface of each tool, so that changes to it are visible in
 * reviews, and one file with the object shapes that several tools share.
 */
export const snapshots: Generator = {
  folders: [FOLDER],
  files() {
    return new Map([
      ...tools.map((tool): [string, string] => [`${FOLDER}/${tool.name}.txt`, renderSnapshot(tool)]),
      [`${FOLDER}/shapes.txt`, renderShapes()],
    ])
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

/**
 * Renders the whole surface of a tool, with one property per line. Only gates and annotations that apply to the tool
 * are named.
 */
export function renderSnapshot(tool: AnyTool): string {
  const { name, title, description, annotations, inputSchema, outputSchema, roles, ...gates } = surfaceIn(tool)
  const { title: shown, ...hints } = annotations ?? {}
  const lines = [
    `${name} (${title}${shown === title ? '' : `, shown as ${shown}`})`,
    `  ${description}`,
    `  ${roles.join(', ')}; ${holding({ ...gates, ...hints })}`,
    ...renderRoot('input', inputSchema),
    ...renderRoot('output', outputSchema as Schema),
  ]
  return `${lines.map(wrap).join('\n')}\n`
}

/** Breaks a line at spaces so that it has at most 160 characters. */
function wrap(line: string): string {
  const indent = `${/^ */.exec(line)?.[0]}      `
  return line.replaceAll(/(?=.{161})(.{100,160}) /g, `$1\n${indent}`)
}

const surfaceIn = (tool: AnyTool) =>
  JSON.parse(JSON.stringify(surfaceOf(tool)), (_key, value: unknown) => withPattern(value)) as ReturnType<
    typeof surfaceOf
  >

/**
 * Converts an object that may have any property names to one with a pattern for names, which is the form in which it is
 * shown.
 */
function withPattern(value: unknown): unknown {
  const { additionalProperties: values, ...rest } = (value ?? {}) as Schema
  return typeof values === 'object' && rest.type === 'object'
    ? { ...rest, patternProperties: { '^(.*)$': values } }
    : value
}

const holding = (facts: object) =>
  Object.entries(facts)
    .flatMap(([key, value]) => (value === true ? key : value === false ? [] : `${key} ${JSON.stringify(value)}`))
    .join(', ')

/** Minimum number of properties of a shape that gets its own name. */
const LEAST_SHARED = 3

/** Gives each shape that several tools share the name of the property that most often has this shape. */
function nameShapes(): ReadonlyMap<string, string> {
  const roots = tools.map((tool) => [surfaceIn(tool).inputSchema, surfaceIn(tool).outputSchema] as Schema[])
  const users = new Map<string, number>()
  for (const root of roots)
    for (const key of new Set(root.flatMap((schema) => shapesIn(schema)).map(([key]) => key)))
      users.set(key, (users.get(key) ?? 0) + 1)
  // If a shape occurs only as a part of one other shape, it gets no name of its own.
  const names = new Map<string, string[]>()
  const isLeft = (key: string, name: string) => {
    const known = names.get(key)
    if ((users.get(key) ?? 0) < 2) return true
    names.set(key, [...(known ?? []), name])
    return known === undefined
  }
  for (const schema of roots.flat()) shapesIn(schema, isLeft)
  const named = new Map<string, string>()
  const taken = new Map<string, number>()
  for (const [key, own] of names) {
    if (own.length < 2) continue
    const name = mostFrequent(own)
    const count = (taken.get(name) ?? 0) + 1
    taken.set(name, count)
    named.set(key, `<${name}${count === 1 ? '' : ` ${count}`}>`)
  }
  return named
}

function mostFrequent(names: readonly string[]): string {
  const count = (name: string) => names.filter((one) => one === name).length
  return names.toSorted((one, other) => count(other) - count(one) || (one < other ? -1 : 1))[0] as string
}

/**
 * Lists the shapes in a schema, each with the name of its property. If `goesOn` returns true for a shape, the parts of
 * this shape are listed too.
 */
function shapesIn(
  schema: Schema,
  goesOn: (key: string, name: string) => boolean = () => true,
  name = 'answer',
): [key: string, name: string][] {
  const { properties = {}, patternProperties = {}, additionalProperties, items, anyOf = [], $defs = {} } = schema
  const key = isShape(schema) ? JSON.stringify(schema) : undefined
  if (key !== undefined && !goesOn(key, name)) return [[key, name]]
  const named = Object.entries({ ...properties, ...patternProperties })
  const nameless = [additionalProperties, items, ...anyOf, ...Object.values($defs)].filter(
    (one) => typeof one === 'object',
  )
  return [
    ...(key === undefined ? [] : [[key, name] as [string, string]]),
    ...named.flatMap(([own, one]) => shapesIn(one, goesOn, own)),
    ...nameless.flatMap((one) => shapesIn(one, goesOn, name)),
  ]
}

/**
 * Returns true if a schema is an object that takes several lines and does not refer to other parts of its tool's
 * schema.
 */
const isShape = (schema: Schema): boolean =>
  Object.keys(schema.properties ?? {}).length >= LEAST_SHARED &&
  inlined(schema) === undefined &&
  !JSON.stringify(schema).includes('"$ref"')

const nameOfShape = (schema: Schema): string | undefined =>
  isShape(schema) ? shapes.get(JSON.stringify(schema)) : undefined

/** Renders the shapes that tools refer to by name. */
function renderShapes(): string {
  const texts = [...shapes].map(([key, name]) =>
    [`${name}`, ...ownLines(JSON.parse(key) as Schema, '  ')].map((line) => `${line}\n`).join(''),
  )
  return texts.sort().join('')
}

/** Renders an object by its properties, followed by the shared parts that several of them refer to. */
function renderRoot(title: string, { $defs: parts = {}, ...schema }: Schema): string[] {
  const shared = Object.entries(parts).flatMap(([name, part]) => [
    `${title} ${name}${said(part)}`,
    ...inside(part, '  '),
  ])
  return [`${title}${said(schema)}`, ...inside(schema, '  '), ...shared]
}

/** Renders the description of a schema as a part of the schema's line. */
function said(schema: Schema): string {
  const { description } = schema
  return `: ${typeOf(schema)}${description === undefined ? '' : ` — ${description}`}`
}

/** Maximum number of characters of an object that is shown on the same line as its property. */
const LONGEST_INLINE = 120

/** Renders an object with few simple properties on one line; returns undefined for any other object. */
function inlined(schema: Schema): string | undefined {
  const { properties, patternProperties = {}, additionalProperties } = schema
  const all = Object.values({ ...properties, ...patternProperties })
  if (all.length === 0 || typeof additionalProperties === 'object') return undefined
  if (all.some((one) => one.description !== undefined || one.anyOf !== undefined || takesLines(one))) return undefined
  const text = `{ ${ownOf(schema)
    .map(([name, one]) => name + said(one))
    .join(', ')} }`
  return text.length <= LONGEST_INLINE ? text : undefined
}

/** Returns true if a schema needs further lines below the line of its property. */
function takesLines(schema: Schema): boolean {
  const { items, anyOf = [] } = schema
  if (ownOf(schema).length > 0 && inlined(schema) === undefined) return true
  return (items !== undefined && takesLines(items)) || anyOf.some(takesLines)
}

/**
 * Renders the type of a schema with all keywords except descriptions, properties and the list of required properties.
 */
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
          ? (nameOfShape(schema) ?? inlined(schema) ?? one)
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
  return [
    ...(nameOfShape(schema) === undefined ? ownLines(schema, indent) : []),
    ...(items === undefined ? [] : inside(items, indent)),
    ...anyOf.flatMap((choice) => inside(choice, indent)),
  ]
}

function ownLines(schema: Schema, indent: string): string[] {
  const own = inlined(schema) === undefined ? ownOf(schema) : []
  return own.flatMap(([name, one]) => [`${indent}${name}${said(one)}`, ...inside(one, `${indent}  `)])
}

/** The names of the shapes that several tools share, by their schema. */
const shapes = nameShapes()
