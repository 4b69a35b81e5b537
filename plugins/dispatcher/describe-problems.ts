import type { TSchema } from '@sinclair/typebox'
import { ValueErrorType, type ValueError } from '@sinclair/typebox/errors'
import levenshtein from 'fastest-levenshtein'
import { PATTERN_MEANINGS } from '../../schemas/new-name.js'

export interface Problem {
  /** JSON pointer into the arguments (RFC 6901); empty for the arguments themselves. */
  path: string
  message: string
}

const MOST_PROBLEMS = 50
/** Of what the client called something; longer names are no typing errors. */
const LONGEST_NAME = 200

/** One problem for every bad path, in words a model can act on: what is missing, what was meant, what is allowed. */
export function describeProblems(errors: Iterable<ValueError>): Problem[] {
  const problems = new Map<string, Problem>()
  for (const error of errors) {
    for (const problem of problemsOf(error)) {
      // TypeBox goes on to say that a missing value has the wrong type as well: the first word on a path is the useful one.
      if (!problems.has(problem.path)) problems.set(problem.path, problem)
    }
    if (problems.size >= MOST_PROBLEMS) break
  }
  return [...problems.values()]
}

function problemsOf(error: ValueError): Problem[] {
  if (error.type === ValueErrorType.Union) {
    const meant = closestVariant(error)
    if (meant !== null) return meant.flatMap(problemsOf)
  }
  return [{ path: error.path.slice(0, LONGEST_NAME), message: messageOf(error) }]
}

/** The errors of the union's variant that the value comes nearest to; null when it is of no variant's type. */
function closestVariant(error: ValueError): ValueError[] | null {
  const candidates = error.errors
    .map((variant) => [...variant])
    .filter((errors) => errors.length > 0 && errors.every((inner) => inner.path !== error.path))
  return candidates.sort((a, b) => a.length - b.length)[0] ?? null
}

function messageOf(error: ValueError): string {
  switch (error.type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'required'
    case ValueErrorType.ObjectAdditionalProperties:
      return unknownName(error)
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
  const leaveOut = error.value === null ? ' (leave it out instead)' : ''
  return `expected ${wanted}${wanted.startsWith('one of') ? '' : `, got ${got}`}${leaveOut}`
}

function unknownName(error: ValueError): string {
  const name = error.path
    .slice(error.path.lastIndexOf('/') + 1)
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')
  const known = Object.keys((error.schema as { properties?: object }).properties ?? {})
  if (known.length === 0) return 'unknown argument; none are taken here'
  return `unknown argument; did you mean '${levenshtein.closest(name.slice(0, LONGEST_NAME), known)}'? Known: ${known.join(', ')}`
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
  return typeOf(schema) || 'another value'
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
