import { leaveOutSecrets } from '../http/redact-secrets.js'
import type { Json } from '../model.js'
import { invalidInput } from '../refusal.js'

/**
 * Reads the fields of a body that has no schema in the simulator, and removes its secrets. Throws 406 unless the body
 * is an object.
 */
export function readFields(body: unknown): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalidInput('The body must be an object')
  return leaveOutSecrets(body) as Json
}
