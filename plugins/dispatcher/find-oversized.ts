import type { TSchema } from '@sinclair/typebox'
import { unescapeText } from '../../domain/text/escape-text.js'

/** A problem with one argument of a tool call. */
export interface Problem {
  /** JSON pointer into the arguments (RFC 6901); empty for the arguments as a whole. */
  path: string
  message: string
}

/**
 * Maximum number of characters of a name or an href. It is the limit of the PCE for names, and hrefs are shorter than
 * that.
 */
const NAME = 255
/** Maximum number of characters of a reference such as `app=ordering`: two names and the character between them. */
const REFERENCE = 2 * NAME + 1
const LONGER: [RegExp, number][] = [
  [/^description$/, 4096],
  [/^cursor$/, 4096],
  // Paths of programs and names of Windows services come from a machine and not from the PCE, so they may be longer
  // than the names of PCE objects.
  [/process|windows_service|^service_name$|^api_secret$/, 1024],
  [/(^|_)(name|href|hrefs|hostname|fqdn|fqdns|key|value|namespace)$/, NAME],
]
const ENTRIES = 200
const PROPERTIES = 100
/** Maximum number of levels to which arguments may be nested. No argument of any tool needs more than half of them. */
const DEPTH = 16
const MOST_PROBLEMS = 50
/** Maximum number of characters of an argument's name that are quoted in the path of a problem. */
const LONGEST_NAME = 200

/**
 * Returns the maximum number of characters of a string argument: the limit in its schema or, if there is none, the
 * limit for arguments with this name (D83). The limits by name are not in the schemas, because they would make up a
 * twentieth of what a model reads in every conversation.
 */
export function mostCharacters(name: string, schema?: TSchema): number {
  const own = schema?.maxLength as number | undefined
  return own ?? LONGER.find(([names]) => names.test(name))?.[1] ?? REFERENCE
}

/**
 * Returns the maximum number of entries of a list: the limit in its schema or, if the schema has none, the limit for
 * all lists without one (D83).
 */
export const mostEntries = (schema?: TSchema): number => (schema?.maxItems as number | undefined) ?? ENTRIES

/**
 * Finds strings and lists that exceed their limit (see `mostCharacters` and `mostEntries`), even in fields that the
 * schema does not name. Does not look into values that are themselves too long or nested too deeply. Returns at most 50
 * problems.
 */
export function findOversized(value: unknown, schema: TSchema): Problem[] {
  const problems: Problem[] = []
  visit(value, alternativesOf(schema), '', '', DEPTH, problems)
  return problems
}

function visit(
  value: unknown,
  schemas: readonly TSchema[],
  name: string,
  path: string,
  depth: number,
  problems: Problem[],
): void {
  if (problems.length >= MOST_PROBLEMS) return
  const refuse = (message: string) => void problems.push({ path, message })
  if (typeof value === 'string') {
    const texts = schemas.filter(({ type }) => type === 'string')
    const most = Math.max(...(texts.length > 0 ? texts : [undefined]).map((schema) => mostCharacters(name, schema)))
    // A visible escape such as `\u200b` counts as the one character that it stands for.
    if (value.length > most && unescapeText(value).length > most) refuse(`at most ${most} characters`)
  } else if (Array.isArray(value)) {
    const lists = schemas.filter(({ type }) => type === 'array')
    const most = Math.max(...(lists.length > 0 ? lists : [undefined]).map(mostEntries))
    if (value.length > most) refuse(`at most ${most} entries`)
    else if (depth === 0) refuse(TOO_DEEP)
    else {
      const inner = lists.flatMap(({ items }) => alternativesOf(items as TSchema | undefined))
      value.forEach((item, at) => visit(item, inner, name, `${path}/${at}`, depth - 1, problems))
    }
  } else if (typeof value === 'object' && value !== null) {
    const names = Object.keys(value)
    if (names.length > PROPERTIES) refuse(`at most ${PROPERTIES} properties`)
    else if (depth === 0) refuse(TOO_DEEP)
    else
      for (const key of names) {
        const inner = schemas.flatMap(({ properties }) => alternativesOf(propertyOf(properties, key)))
        visit((value as Record<string, unknown>)[key], inner, key, `${path}/${escapePointer(key)}`, depth - 1, problems)
      }
  }
}

const TOO_DEEP = `nested more than ${DEPTH} levels deep`

/** Returns the alternatives that a schema permits, after expanding its unions. */
function alternativesOf(schema: TSchema | undefined): TSchema[] {
  if (schema === undefined) return []
  const { anyOf } = schema as { anyOf?: TSchema[] }
  return anyOf === undefined ? [schema] : anyOf.flatMap(alternativesOf)
}

function propertyOf(properties: unknown, name: string): TSchema | undefined {
  const known = properties as Record<string, TSchema> | undefined
  return known !== undefined && Object.hasOwn(known, name) ? known[name] : undefined
}

/** Shortens a name and escapes it for a JSON pointer (RFC 6901, 3). */
function escapePointer(name: string): string {
  const short = name.slice(0, LONGEST_NAME)
  return /[~/]/.test(short) ? short.replaceAll('~', '~0').replaceAll('/', '~1') : short
}
