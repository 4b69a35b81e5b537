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

/** The created object. It exists once the PCE has answered, so an answer that cannot be read is no failure to create. */
export function createdOf<T>(answer: Answer, endpoint: string, unwrap: boolean): T {
  let body: unknown
  try {
    body = answer.json<unknown>()
  } catch (cause) {
    const text = `POST ${endpoint}: the PCE accepted the object (status ${answer.status}), but its answer cannot be read. Look before repeating it.`
    throw new PceError('outcome_unknown', text, { cause })
  }
  return (unwrap && Array.isArray(body) ? (body as unknown[])[0] : body) as T
}
