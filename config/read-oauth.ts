import { ROLES, type Role } from '../schemas/caller.js'
import {
  StartupError,
  type BrowserLogin,
  type OAuthConfig,
  type RateLimits,
  type RoleMapping,
} from '../schemas/config.js'
import { readInteger, readList, type Environment } from './read-values.js'

/** RFC 6749, 3.3: one scope-token. */
const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/
const MOST_PER_MINUTE = 1_000_000

/** How access tokens are checked; the URLs were checked before. Throws StartupError. */
export function readOAuth(env: Environment): OAuthConfig {
  const requiredScope = env.MCP_OAUTH_REQUIRED_SCOPE || 'svc-mcp.use'
  const requestedScope = env.MCP_OAUTH_REQUEST_SCOPE
  for (const [name, scope] of Object.entries({
    MCP_OAUTH_REQUIRED_SCOPE: requiredScope,
    MCP_OAUTH_REQUEST_SCOPE: requestedScope || requiredScope,
  })) {
    if (!SCOPE_TOKEN.test(scope)) throw new StartupError(`${name} must be one scope, without blanks`)
  }
  const audience = env.MCP_OAUTH_AUDIENCE!
  if (/^\s|\s$|\p{Cc}/u.test(audience))
    throw new StartupError('MCP_OAUTH_AUDIENCE must not begin or end with a blank, or hold control characters')
  const more = readList(env, 'MCP_OAUTH_GROUPS_CLAIM')
  return {
    issuer: env.MCP_OAUTH_ISSUER!,
    jwksUrl: env.MCP_OAUTH_JWKS_URL!,
    audience,
    requiredScope,
    ...(requestedScope && { requestedScope }),
    groupsClaims: [...new Set(['groups', 'roles', ...more])],
  }
}

/** Who is what. A mapping that nobody can match is no mistake, but worth a warning. Throws StartupError for a role that does not exist. */
export function readRoles(env: Environment, warnings: string[]): RoleMapping {
  const listOf = (role: Role) => readList(env, `MCP_ROLE_GROUPS_${role.toUpperCase()}`)
  const groups = { reader: listOf('reader'), operator: listOf('operator'), admin: listOf('admin') }
  const named = env.MCP_ROLE_DEFAULT || null
  const otherwise = ROLES.find((role) => role === named) ?? null
  if (named !== null && otherwise === null)
    throw new StartupError(`MCP_ROLE_DEFAULT must be one of ${ROLES.join(', ')}`)
  if (otherwise === null && ROLES.every((role) => groups[role].length === 0)) {
    warnings.push(
      'No MCP_ROLE_GROUPS_READER, _OPERATOR or _ADMIN and no MCP_ROLE_DEFAULT: every caller gets forbidden_no_role.',
    )
  }
  return { groups, otherwise }
}

/** Throws StartupError. */
export function readRates(env: Environment): RateLimits {
  const perMinute = (name: string, otherwise: number) =>
    readInteger(env, name, { min: 0, max: MOST_PER_MINUTE, otherwise })
  return {
    inFlightPerCaller: readInteger(env, 'MCP_MAX_IN_FLIGHT_PER_CALLER', { min: 0, max: 100_000, otherwise: 32 }),
    perCaller: perMinute('MCP_RATE_LIMIT_PER_MINUTE', 600),
    confirmPerCaller: perMinute('MCP_CONFIRM_RATE_PER_MINUTE', 10),
    refusedTokensPerAddress: perMinute('MCP_REFUSED_TOKENS_PER_MINUTE', 30),
  }
}

/** The client of the browser login; undefined without MCP_OAUTH_CLIENT_ID. Throws StartupError for a secret without a client. */
export function readLogin(env: Environment): BrowserLogin | undefined {
  const { MCP_OAUTH_CLIENT_ID: clientId, MCP_OAUTH_CLIENT_SECRET: clientSecret } = env
  if (!clientId && clientSecret) throw new StartupError('MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID')
  return clientId ? { clientId, ...(clientSecret && { clientSecret }) } : undefined
}
