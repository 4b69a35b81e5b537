import type { OAuthConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { ProtectedResource } from '../../schemas/http.js'
import type { BearerError, InvalidTokenError } from './read-token.js'

interface ChallengeOptions {
  metadataUrl: string
  /** The scopes that clients should request, separated by blanks. */
  scope: string
}

/**
 * Builds the value of the header WWW-Authenticate. It contains the URL of the protected resource metadata (S7) and the
 * scopes that the client should request. If the request had an access token, it also contains the error code and reason
 * (RFC 6750, 3). Nothing in it was sent by a client.
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

/** Formats a string as a quoted-string (RFC 9110, 5.6.4). */
const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

const MESSAGES = {
  missing: 'An access token is required: log in at the authorization server that WWW-Authenticate points to.',
  invalid_token: 'The access token is not valid.',
  insufficient_scope: 'The access token lacks the scope that this server requires.',
}

/** Converts the refusal of an access token to ToolError `unauthorized {reason}`, which any route can send. */
export function explainRefusal(refusal: InvalidTokenError): ToolError {
  const { error, reason } = refusal
  return new ToolError('unauthorized', MESSAGES[error ?? 'missing'], { reason }, { cause: refusal })
}

/** The path of the protected resource metadata, relative to the public URL (S11). */
export const METADATA_PATH = '/.well-known/oauth-protected-resource'

/**
 * Builds the protected resource metadata of RFC 9728. It depends only on the configuration and not on the Host header.
 */
export function describeResource(
  publicUrl: string,
  { issuer, requiredScope, requestedScope }: OAuthConfig,
  name: string,
): ProtectedResource {
  return {
    resource: withoutSlash(publicUrl),
    authorization_servers: [issuer],
    scopes_supported: (requestedScope ?? requiredScope).split(' '),
    bearer_methods_supported: ['header'],
    resource_name: name,
  }
}

export const metadataUrl = (publicUrl: string): string => `${withoutSlash(publicUrl)}${METADATA_PATH}`

/**
 * Returns the URL of the identity provider's metadata, which all common providers publish (OpenID Connect Discovery,
 * 4).
 */
export const discoveryUrl = ({ issuer }: OAuthConfig): string =>
  `${withoutSlash(issuer)}/.well-known/openid-configuration`

const withoutSlash = (url: string) => url.replace(/(?<!\/)\/+$/, '')
