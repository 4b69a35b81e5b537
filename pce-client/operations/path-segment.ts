import { PceError } from '../errors.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'

/**
 * An id of the caller's as one segment of a path: ids are not always numbers or UUIDs (P45), and a slash inside one must not lead
 * to another object.
 *
 * @param name what the specification calls it.
 * @throws {PceError} `invalid_argument` for what cannot be a segment.
 */
export function segment(name: string, id: string): string {
  // Dots are a way up, even between encoded slashes; unpaired surrogates cannot be encoded.
  const isUsable = typeof id === 'string' && id !== '' && !/(?:^|[/\\])\.{1,2}(?:[/\\]|$)|\p{Surrogate}/u.test(id)
  if (!isUsable) throw new PceError('invalid_argument', `${name} must be a text that can stand in a path`)
  return encodeURIComponent(id)
}

/** `draft`, `active`, or the number of a version, which may also be a text. @throws {PceError} `invalid_argument` otherwise. */
export function versionSegment(policyVersion: PolicyVersionSelector): string {
  const version = String(policyVersion)
  if (/^(?:draft|active|[1-9]\d{0,15})$/.test(version)) return version
  throw new PceError('invalid_argument', 'policyVersion must be draft, active or the number of a version')
}
