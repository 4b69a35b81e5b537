import { InvalidTokenError } from './invalid-token.js'
import { repeatsAMember } from './repeats-a-member.js'

const BASE64URL = /^[A-Za-z0-9_-]+$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The JSON object in the header or payload of a token: base64url without padding, proper UTF-8, no member twice (RFC
 * 7515, 2 and 5.2; RFC 7519, 7.2). Throws InvalidTokenError.
 */
export function decodePart(part: string): Record<string, unknown> {
  try {
    if (!BASE64URL.test(part)) throw new InvalidTokenError('malformed token')
    const json = utf8.decode(Buffer.from(part, 'base64url'))
    const value = JSON.parse(json) as unknown
    if (value === null || typeof value !== 'object' || Array.isArray(value) || repeatsAMember(json)) {
      throw new InvalidTokenError('malformed token')
    }
    return value as Record<string, unknown>
  } catch {
    throw new InvalidTokenError('malformed token')
  }
}
