import { PceError } from './errors.js'
import type { Answer } from './transport.js'

/** The objects of an answer; null and nothing count as none. @throws {PceError} `invalid_response` for anything else. */
export function listOf<T>(answer: Answer, endpoint: string): T[] {
  const body = answer.json<unknown>() ?? []
  if (Array.isArray(body) && body.every((item) => typeof item === 'object' && item !== null)) return body as T[]
  throw new PceError('invalid_response', `${endpoint}: the PCE answered something else than a list of objects`)
}

/** The object of an answer. @throws {PceError} `invalid_response` when there is none. */
export function bodyOf<T>(answer: Answer): T {
  const body = answer.json<T | undefined>()
  if (typeof body === 'object' && body !== null) return body
  throw new PceError('invalid_response', 'the PCE answered without the object')
}

/** How the body of a creating POST was sent: one object, one as a list of one, or a list. */
export type Creation = 'one' | 'wrapped' | 'list'

/**
 * What was created, as the PCE answers it: an object, or objects, with their hrefs (P7). It exists once the PCE has answered, so an
 * answer that does not name it is no failure to create.
 *
 * @throws {PceError} `outcome_unknown` for such an answer.
 */
export function createdOf<T>(answer: Answer, endpoint: string, creation: Creation): T {
  let cause: unknown
  try {
    const body = answer.json<unknown>()
    const made = creation === 'wrapped' && Array.isArray(body) ? (body as unknown[])[0] : body
    const isNamed = creation === 'list' ? Array.isArray(made) && made.length > 0 && made.every(hasHref) : hasHref(made)
    if (isNamed) return made as T
  } catch (error) {
    cause = error
  }
  const text = `POST ${endpoint}: the PCE accepted the object (status ${answer.status}), but its answer cannot be read. Look before repeating it.`
  throw new PceError('outcome_unknown', text, { cause })
}

function hasHref(made: unknown): boolean {
  return typeof (made as { href?: unknown } | null | undefined)?.href === 'string'
}
