import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { ToolError } from '../../schemas/errors.js'
import { findUncanonical } from './find-uncanonical.js'

// A CommonJS module that is the function itself; its types speak of a default export.
const serialize = canonicalize as unknown as (value: unknown) => string | undefined

/** The RFC 8785 form of parsed JSON: names sorted by UTF-16 units, numbers and strings as ECMAScript writes them, no blanks. */
export function canonicalForm(value: unknown): string {
  return serialize(value) ?? 'null'
}

/**
 * `params_hash` of a call: lowercase hex SHA-256 of the canonical form of its arguments in UTF-8 (S5, D19). `args` are as the
 * client sent them, without a `_meta` of the top level; absent arguments are `{}`. Throws ToolError `invalid_argument {problems}`
 * where two readers of the same text could see different arguments.
 */
export function paramsHash(args: Record<string, unknown>): string {
  const problems = findUncanonical(args)
  if (problems.length > 0) {
    const said = problems.map(({ path, message }) => `${path || 'arguments'}: ${message}`).join('; ')
    throw new ToolError('invalid_argument', `The arguments have no canonical form: ${said}`.slice(0, 1000), {
      problems,
    })
  }
  return createHash('sha256').update(canonicalForm(args), 'utf8').digest('hex')
}
