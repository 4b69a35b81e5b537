import type { Identity } from '../../schemas/caller.js'
import type { OAuthConfig } from '../../schemas/config.js'
import { InvalidTokenError } from './read-token.js'

type Claims = Record<string, unknown>

/**
 * The relevant contents of an access token. Times are in seconds since the epoch; `checkTimes` decides whether the
 * token is valid now.
 */
export interface ReadClaims {
  identity: Identity
  hasRequiredScope: boolean
  exp: number
  nbf?: number
  iat?: number
}

const LONGEST_SUB = 255
/**
 * Matches characters that are unsafe in a `sub`: control characters, line and paragraph separators, and lone
 * surrogates, which UTF-8 cannot distinguish.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
/** Claims that occur only in ID and logout tokens (OpenID Connect Core, 2 and 3.1.3.6; Back-Channel Logout, 2.4). */
const FOREIGN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash'] as const
/** The `typ` claims of Keycloak tokens that are not access tokens. */
const FOREIGN_TYPES = new Set(['ID', 'Refresh', 'Offline', 'Logout'])

/**
 * Throws InvalidTokenError unless the claim `iss` is exactly the configured issuer (S10). If the issuer uses another
 * name in access tokens, `iss` must be exactly that other name (D203).
 */
export function checkIssuer({ iss }: Claims, { issuer, tokenIssuer = issuer }: OAuthConfig): void {
  if (iss !== tokenIssuer) throw new InvalidTokenError('iss mismatch')
}

/**
 * Reads the claims of a payload whose signature has been verified. Times are only read; they are not compared with the
 * current time. Throws InvalidTokenError if a claim is not exactly as the specification and D14 require.
 */
export function readClaims(payload: Claims, oauth: OAuthConfig): ReadClaims {
  checkIssuer(payload, oauth)
  const { aud, sub } = payload
  if (aud !== oauth.audience && !(Array.isArray(aud) && aud.includes(oauth.audience))) {
    throw new InvalidTokenError('aud mismatch')
  }
  if (!isAccessToken(payload)) throw new InvalidTokenError('not an access token')
  const exp = readTime(payload, 'exp')
  if (exp === undefined) throw new InvalidTokenError('exp missing')
  if (typeof sub !== 'string' || sub === '' || sub.length > LONGEST_SUB || UNSAFE.test(sub)) {
    throw new InvalidTokenError('sub missing or malformed')
  }
  const iat = readTime(payload, 'iat')
  return {
    // The identity is frozen because all requests with the same token share it.
    identity: Object.freeze({
      iss: oauth.issuer,
      sub,
      groups: Object.freeze(readGroups(payload, oauth.groupsClaims)),
      hasGroupsOverage: hasGroupsOverage(payload, oauth.groupsClaims),
      ...(iat !== undefined && { issuedAt: iat }),
      ...shownAs('name', payload, NAME_CLAIMS),
      ...shownAs('clientId', payload, CLIENT_CLAIMS),
    }),
    hasRequiredScope: readOAuthScopes(payload).has(oauth.requiredScope),
    exp,
    nbf: readTime(payload, 'nbf'),
    iat,
  }
}

/** The claims that may contain a person's name, in order of preference (OpenID Connect Core, 5.1). */
const NAME_CLAIMS = ['name', 'preferred_username'] as const
/** The claims that name the client: RFC 9068, 2.2; OpenID Connect Core, 2; Entra ID version 1; Okta. */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'cid'] as const
const LONGEST_SHOWN = 128

/**
 * Returns an object with a single property, `field`, whose value is the first of the named claims that may be shown to
 * people. Returns an empty object if there is no such claim.
 */
function shownAs<F extends 'name' | 'clientId'>(
  field: F,
  payload: Claims,
  names: readonly string[],
): Pick<Identity, F> | object {
  const values = names.map((name) => payload[name])
  const found = values.find(
    (value) => typeof value === 'string' && value !== '' && value.length <= LONGEST_SHOWN && !UNSAFE.test(value),
  )
  return found === undefined ? {} : { [field]: found }
}

/**
 * Reads a claim that contains a time. Returns undefined if the claim is absent. Throws InvalidTokenError if its value
 * is not a finite number.
 */
function readTime(payload: Claims, name: 'exp' | 'nbf' | 'iat'): number | undefined {
  if (!Object.hasOwn(payload, name)) return undefined
  const value = payload[name]
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new InvalidTokenError(name === 'exp' ? 'exp missing' : 'malformed token')
  }
  return value
}

/**
 * Returns true if the token is an access token. A `nonce` usually marks an ID token, but older Keycloak releases copy
 * the nonce of the login into access tokens too; those have the type `Bearer`.
 */
function isAccessToken(payload: Claims): boolean {
  const { typ, events } = payload
  if (typeof typ === 'string' && FOREIGN_TYPES.has(typ)) return false
  if (typeof events === 'object') return false
  return typ === 'Bearer' || !FOREIGN_CLAIMS.some((name) => Object.hasOwn(payload, name))
}

/**
 * Returns the groups in all named claims together, without duplicates. Values that are not strings are ignored. A claim
 * may also be a single string, because AD FS and Ping write a list of one group in this way (D204). If no claim has a
 * given name, the name is interpreted as a dotted path (Keycloak's `realm_access.roles`).
 */
function readGroups(payload: Claims, names: readonly string[]): readonly string[] {
  const groups = new Set<string>()
  for (const name of names) {
    const values = Object.hasOwn(payload, name) ? payload[name] : follow(payload, name.split('.'))
    // Instead of the groups, Entra ID may send the name of a source, such as `src1`, from which they can be requested.
    if (typeof values === 'string' && isElsewhere(payload, name)) continue
    for (const value of [values].flat()) if (typeof value === 'string' && value !== '') groups.add(value)
  }
  return [...groups]
}

/** Returns true if a claim must be requested from another source (OpenID Connect Core, 5.6.2). */
function isElsewhere({ _claim_names: elsewhere }: Claims, name: string): boolean {
  return isObject(elsewhere) && Object.hasOwn(elsewhere, name)
}

/**
 * Returns true if the provider has left the groups out because there are too many for a token (Entra ID). The token
 * then says in `_claim_sources` where the groups can be requested. This server never reads `_claim_sources`, because no
 * token may make it send a request.
 */
function hasGroupsOverage(payload: Claims, names: readonly string[]): boolean {
  const { groups, hasgroups } = payload
  if (['groups', ...names].some((name) => isElsewhere(payload, name) && !Array.isArray(payload[name]))) return true
  return !Array.isArray(groups) && hasgroups !== undefined && hasgroups !== false
}

function follow(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? follow(value[name], rest) : undefined
}

const isObject = (value: unknown): value is Claims => typeof value === 'object' && value !== null

/**
 * Returns the scopes of a token from its claims `scope` (RFC 8693, 4.2: one string, separated by blanks) and `scp` (a
 * string in Entra ID, an array in Okta). An element of an array is always one scope, even if it contains blanks.
 */
function readOAuthScopes({ scope, scp }: Record<string, unknown>): Set<string> {
  return new Set([...oauthScopesIn(scope), ...oauthScopesIn(scp)])
}

function oauthScopesIn(value: unknown): string[] {
  if (typeof value === 'string') return value.split(' ')
  if (Array.isArray(value)) return value.filter((element) => typeof element === 'string')
  return []
}
