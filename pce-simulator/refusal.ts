import { UNCERTAIN } from './uncertain.js'

export interface PceErrorItem {
  token: string
  message: string
}

/** An error answer in the PCE's own form: a status and a list of `{token, message}` (P29). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly errors: readonly PceErrorItem[],
  ) {
    super(errors.map((error) => `${error.token}: ${error.message}`).join('; '))
    this.name = 'Refusal'
  }
}

/**
 * Creates a 406, by far the most frequent error: it means that the payload violates its schema or a business rule (P30,
 * P31).
 */
export function notAcceptable(token: string, message: string): Refusal {
  return new Refusal(406, [{ token, message }])
}

/** Creates a 406 for a well-formed payload that violates a rule for which there is no specific token. */
export function invalidInput(message: string): Refusal {
  return notAcceptable('input_validation_error', message)
}

export function invalidUri(value: unknown): Refusal {
  return notAcceptable('invalid_uri', `Invalid URI: {${typeof value === 'string' ? value : JSON.stringify(value)}}`)
}

export function notFound(): Refusal {
  return new Refusal(404, UNCERTAIN.notFoundBody)
}

export function methodNotAllowed(): Refusal {
  return new Refusal(405, UNCERTAIN.methodNotAllowedBody)
}
