import { type TSchema, TypeGuard, TypeRegistry } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { ToolError } from '../../schemas/errors.js'
import { PATTERN_MEANINGS } from '../../schemas/new-name.js'
import { OPEN_FIELDS } from '../../schemas/synonyms.js'
import { nearNames } from '../../domain/text/compare-texts.js'
import { quote, readEscapes } from '../../domain/text/escape-text.js'
import type { AnyTool } from '../../tools/define.js'
import { readSynonyms } from './read-synonyms.js'
import { findOversized, type Problem } from './find-oversized.js'

const inputs = new WeakMap<AnyTool, TypeCheck<TSchema>>()
const outputs = new WeakMap<AnyTool, TypeCheck<TSchema>>()

/**
 * Validates the arguments of a tool call. Returns a copy in which synonyms are replaced with the words of the schema
 * (D101), defaults are filled in, and escapes are replaced with their characters (D27). Throws ToolError
 * `invalid_argument {problems: [{path, message}]}` with at most 50 invalid paths. Each schema is compiled when it is
 * first used.
 */
export function validateArguments(tool: AnyTool, sent: Record<string, unknown>): Record<string, unknown> {
  const check = compiled(inputs, tool, tool.input)
  const named = readSynonyms(sent, tool.input)
  refuse(tool, findOversized(named, tool.input))
  const args = readEscapes(named)
  const copy = fillDefaults(tool.input, copyOf(args))
  if (check.Check(copy)) return copy
  refuse(tool, describeProblems(check.Errors(copy)))
  throw new ToolError('invalid_argument', `${tool.name}: the arguments do not match its schema`)
}

/**
 * Copies the arguments. Flat arguments, the most frequent case, are copied in a faster way than nested ones. In both
 * cases, `__proto__` is treated as an ordinary, unknown name.
 */
const copyOf = (args: Record<string, unknown>): Record<string, unknown> =>
  Object.values(args).every((value) => typeof value !== 'object') ? { ...args } : structuredClone(args)

const defaults = new WeakMap<TSchema, [name: string, value: unknown][] | null>()

/**
 * Fills in the schema's defaults. Most schemas have defaults only at the top level; for these, the slow walk of TypeBox
 * through the whole schema is not needed.
 */
function fillDefaults(schema: TSchema, args: Record<string, unknown>): Record<string, unknown> {
  let known = defaults.get(schema)
  if (known === undefined) defaults.set(schema, (known = defaultsAtTop(schema)))
  if (known === null) return Value.Default(schema, args) as Record<string, unknown>
  for (const [name, value] of known) if (args[name] === undefined) args[name] = value
  return args
}

/**
 * Returns the defaults of a schema's top level. Returns null if some defaults may be nested, computed or shared between
 * calls.
 */
function defaultsAtTop(schema: TSchema): [name: string, value: unknown][] | null {
  const { properties, ...rest } = schema as TSchema & { properties?: Record<string, TSchema> }
  if (!TypeGuard.IsObject(schema) || mentionsDefault(rest)) return null
  const found: [string, unknown][] = []
  for (const [name, property] of Object.entries(properties ?? {})) {
    const own: unknown = property.default
    const isPlain = typeof own !== 'object' && typeof own !== 'function'
    if (!isPlain || '$ref' in property || mentionsDefault({ ...property, default: undefined })) return null
    if (own !== undefined) found.push([name, own])
  }
  return found
}

const mentionsDefault = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(([name, inner]) => (name === 'default' && inner !== undefined) || mentionsDefault(inner))

function refuse(tool: AnyTool, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  throw new ToolError('invalid_argument', `${tool.name}: ${problems.map(inWords).join('; ')}`, { problems })
}

/** Returns the ways in which a tool's answer does not match its output schema; returns an empty list if it matches. */
export function findOutputProblems(tool: AnyTool, value: unknown): Problem[] {
  const check = compiled(outputs, tool, tool.output)
  return check.Check(value) ? [] : describeProblems(check.Errors(value))
}

function compiled(cache: WeakMap<AnyTool, TypeCheck<TSchema>>, tool: AnyTool, schema: TSchema): TypeCheck<TSchema> {
  let check = cache.get(tool)
  if (check === undefined) {
    check = compileSchema(schema)
    cache.set(tool, check)
  }
  return check
}

/**
 * Formats a problem. A path that does not look like names of arguments is quoted, because a client may have sent a
 * whole sentence as a name.
 */
const inWords = ({ path, message }: Problem) =>
  `${path === '' ? 'arguments' : /^[\w/~-]+$/u.test(path) ? path : quote(path)}: ${message}`

const MOST_PROBLEMS = 50
/** Maximum number of characters of the path of a problem. A client may have sent a long text as a name. */
const LONGEST_NAME = 200

/**
 * Describes one problem for each invalid path, so that a model can act on it: what is missing, what was meant, what is
 * allowed.
 */
export function describeProblems(errors: Iterable<ValueError>): Problem[] {
  const problems = new Map<string, Problem>()
  for (const error of errors) {
    for (const problem of problemsOf(error)) {
      // Only the first error for a path is used: for a missing value, TypeBox also reports the wrong type.
      if (!problems.has(problem.path)) problems.set(problem.path, problem)
    }
    if (problems.size >= MOST_PROBLEMS) break
  }
  return [...problems.values()]
}

function problemsOf(error: ValueError): Problem[] {
  if (error.type === ValueErrorType.Union) {
    // The errors are copied into arrays, because their iterators can be read only once.
    const variants = error.errors.map((variant) => [...variant])
    const meant = closestVariant(variants, error.path)
    if (meant !== null) return meant.flatMap(problemsOf)
    const message = outOfBounds(error, variants)
    if (message !== null) return [{ path: error.path.slice(0, LONGEST_NAME), message }]
  }
  return [{ path: error.path.slice(0, LONGEST_NAME), message: messageOf(error) }]
}

/**
 * Returns the errors of the variant of a union that is closest to the value. Returns null if no variant has the value's
 * type.
 */
function closestVariant(variants: readonly ValueError[][], path: string): ValueError[] | null {
  const candidates = variants.filter((errors) => errors.length > 0 && errors.every((inner) => inner.path !== path))
  return candidates.sort((a, b) => a.length - b.length)[0] ?? null
}

const BOUNDS: readonly ValueErrorType[] = [ValueErrorType.IntegerMinimum, ValueErrorType.IntegerMaximum]

/**
 * Describes an integer that is out of bounds in a union: the bounds in one alternative, and what the other alternatives
 * accept. Returns null for any other problem.
 */
function outOfBounds({ schema, value, path }: ValueError, variants: readonly ValueError[][]): string | null {
  const found = variants.flat().find((inner) => inner.path === path && BOUNDS.includes(inner.type))
  if (found === undefined) return null
  const others = ((schema.anyOf ?? []) as TSchema[]).filter((one) => one !== found.schema).map(describeSchema)
  return `${messageOf(found)}${others.length === 0 ? '' : `, or ${others.join(' or ')}`}; got ${typeof value === 'string' ? quote(value) : String(value)}`
}

function messageOf(error: ValueError): string {
  switch (error.type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'required'
    case ValueErrorType.ObjectAdditionalProperties:
      return unknownName(error)
    case ValueErrorType.StringMinLength:
      return 'must not be empty'
    case ValueErrorType.ArrayMinItems:
      return `at least ${error.schema.minItems} ${error.schema.minItems === 1 ? 'entry' : 'entries'}`
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return `must be at least ${error.schema.minimum}`
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return `must be at most ${error.schema.maximum}`
    case ValueErrorType.StringPattern:
      return PATTERN_MEANINGS.get(String(error.schema.pattern)) ?? error.message.replace(/^E/, 'e')
    default:
  }
  const wanted = describeSchema(error.schema)
  const got = typeName(error.value)
  const isTypeProblem =
    error.type === ValueErrorType.Union ||
    error.type === ValueErrorType.Kind ||
    error.message === `Expected ${typeOf(error.schema)}`
  if (!isTypeProblem) return error.message.replace(/^E/, 'e')
  return `expected ${wanted}${wanted.startsWith('one of') ? '' : `, got ${got}`}`
}

function unknownName(error: ValueError): string {
  const name = error.path
    .slice(error.path.lastIndexOf('/') + 1)
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')
  const { properties = {}, required = [] } = error.schema as { properties?: object; required?: string[] }
  const known = Object.keys(properties)
  if (known.length === 0) return 'unknown argument; none are accepted here'
  const near = nearNames(name, known)
  // If several known names contain the unknown name, a required argument is suggested.
  const whole = near.filter((candidate) => candidate.includes(name.toLowerCase()))
  const meant = whole.find((candidate) => required.includes(candidate)) ?? near[0]
  return `unknown argument${meant === undefined ? '.' : `; did you mean '${meant}'?`} Known: ${known.join(', ')}`
}

const typeOf = (schema: TSchema) => (typeof schema.type === 'string' ? schema.type : '')

function describeSchema(schema: TSchema): string {
  const { anyOf, enum: values, const: only } = schema as { anyOf?: TSchema[]; enum?: unknown[]; const?: unknown }
  if (values !== undefined) return `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`
  if (only !== undefined) return JSON.stringify(only)
  if (anyOf !== undefined) {
    const literals = anyOf.every((variant) => variant.const !== undefined)
    return `${literals ? 'one of ' : ''}${[...new Set(anyOf.map(describeSchema))].join(literals ? ', ' : ' or ')}`
  }
  const fields = (schema as { [OPEN_FIELDS]?: readonly string[] })[OPEN_FIELDS] ?? []
  const inside = fields.length === 0 ? '' : ` with ${fields.join(', ')}`
  return `${typeOf(schema) || 'another value'}${inside}`
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/**
 * Registers the validation of schemas of the type Unsafe, which TypeBox leaves to the application. In this server, they
 * are string enumerations (`StringEnum`) and objects that a resolver reads.
 */
TypeRegistry.Set('Unsafe', (schema: { enum?: unknown[]; type?: string }, value) => {
  if (Array.isArray(schema.enum)) return schema.enum.includes(value)
  if (schema.type !== 'object')
    throw new TypeError('an Unsafe schema is an enum or an open object, nothing else is checked')
  return typeof value === 'object' && value !== null && !Array.isArray(value)
})

export const compileSchema = (schema: TSchema): TypeCheck<TSchema> => TypeCompiler.Compile(schema)
