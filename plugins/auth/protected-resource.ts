import type { OAuthConfig } from '../../schemas/config.js'
import type { ProtectedResource } from '../../schemas/http/protected-resource.js'

/** Relative to the public URL (S11). */
export const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** The metadata of RFC 9728, made from the configuration alone: a Host header decides nothing. */
export function describeResource(
  publicUrl: string,
  { issuer, requiredScope, requestedScope }: OAuthConfig,
  name: string,
): ProtectedResource {
  return {
    resource: withoutSlash(publicUrl),
    authorization_servers: [issuer],
    scopes_supported: [requestedScope ?? requiredScope],
    bearer_methods_supported: ['header'],
    resource_name: name,
  }
}

export const metadataUrl = (publicUrl: string): string => `${withoutSlash(publicUrl)}${METADATA_PATH}`

/** Where every common provider describes itself (OpenID Connect Discovery, 4). */
export const discoveryUrl = ({ issuer }: OAuthConfig): string =>
  `${withoutSlash(issuer)}/.well-known/openid-configuration`

const withoutSlash = (url: string) => url.replace(/\/+$/, '')
