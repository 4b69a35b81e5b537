import type { BearerError, InvalidTokenError } from './invalid-token.js'

export interface ChallengeOptions {
  metadataUrl: string
  scope: string
}

/**
 * The value of WWW-Authenticate: where to find the metadata comes first (S7), then what was wrong, unless there was no token (RFC
 * 6750, 3), then the scope to ask for. Holds nothing that a client sent.
 */
export function renderChallenge(
  { metadataUrl, scope }: ChallengeOptions,
  refusal?: Pick<InvalidTokenError, 'reason'> & { error: BearerError | null },
): string {
  const parameters: [string, string][] = [['resource_metadata', metadataUrl]]
  if (refusal?.error) parameters.push(['error', refusal.error], ['error_description', refusal.reason])
  parameters.push(['scope', scope])
  return `Bearer ${parameters.map(([name, value]) => `${name}=${quote(value)}`).join(', ')}`
}

/** A quoted-string (RFC 9110, 5.6.4). */
const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
