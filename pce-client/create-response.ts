import type { CallState } from './call-state.js'
import { PceError } from './errors.js'
import type { Answer } from './transport.js'

/** The answer of a call as its caller sees it. */
export function createResponse(
  status: number,
  headers: Answer['headers'],
  text: string,
  { method, path, mayHaveHappened }: CallState,
): Answer {
  return {
    status,
    headers,
    text,
    repeated: mayHaveHappened,
    json<T>(): T {
      if (text.trim() === '') return undefined as T
      try {
        return JSON.parse(text) as T
      } catch {
        throw new PceError('invalid_response', `${method} ${path}: the answer is not valid JSON (status ${status})`)
      }
    },
  }
}
