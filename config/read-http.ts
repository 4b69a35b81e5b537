import { ROLES, type Role } from '../schemas/caller.js'
import {
  StartupError,
  type BrowserLoginConfig,
  type InsecureHttpConfig,
  type ListenOptions,
  type OAuthConfig,
  type PceMode,
  type PerUserConfig,
  type RateLimits,
  type RoleMapping,
  type SharedConfig,
} from '../schemas/config.js'
import { readCommon, readPce, readPceConnection, warnOfConfirmTools } from './read-every-mode.js'
import { readKey, readPreviousKey } from './read-secrets.js'
import {
  checkUrl,
  isLoopback,
  missingOf,
  readBoolean,
  readHosts,
  readInteger,
  readList,
  readProxies,
  type Environment,
} from './read-values.js'

const OAUTH_VARIABLES = ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE']
const PCE_MODES = ['per_user', 'shared'] as const satisfies readonly PceMode[]
/** RFC 6749, 3.3: one scope-token. */
const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/
const MOST_PER_MINUTE = 1_000_000

/**
 * The startup gates of HTTP without MCP_DEV_INSECURE=1 that need no secret: where it listens, then the OAuth variables (S16, D8).
 * Throws StartupError with the specification's words.
 */
export function checkAddressAndOAuth(env: Environment, { host, socket }: ListenOptions): void {
  if (socket === undefined && !isLoopback(host))
    throw new StartupError(`Refusing to bind '${host}' without MCP_DEV_INSECURE=1`)
  const missing = missingOf(env, OAUTH_VARIABLES)
  if (missing.length > 0) throw new StartupError(`Missing required OAuth env vars: ${missing.join(', ')}`)
}

/** The gates that follow: the mode, the variables it needs, and the form of the URLs. Throws StartupError; returns the mode. */
function checkModeAndKeys(env: Environment): PceMode {
  const mode = readMode(env)
  if (mode === 'shared') {
    if (!env.PCE_HOST) throw new StartupError('MCP_PCE_MODE=shared requires PCE_HOST env var')
    const missing = missingOf(env, ['API_KEY', 'API_SECRET'])
    if (missing.length > 0) {
      const plural = missing.length > 1 ? 's' : ''
      throw new StartupError(`MCP_PCE_MODE=shared requires ${missing.join(', ')} env var${plural}`)
    }
  }
  for (const key of mode === 'shared' ? ['MCP_CONFIRM_HMAC_KEY'] : ['MCP_KEK', 'MCP_CONFIRM_HMAC_KEY'])
    if (!env[key]) throw new StartupError(`${key} env var is required`)
  for (const url of ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL']) checkUrl(env, url)
  return mode
}

/** Throws StartupError for a mode that does not exist (D11). */
export function readMode(env: Environment): PceMode {
  const named = env.MCP_PCE_MODE || 'per_user'
  const mode = PCE_MODES.find((known) => known === named)
  if (mode === undefined) throw new StartupError(`MCP_PCE_MODE '${named}' is unknown: use ${PCE_MODES.join(' or ')}`)
  return mode
}

/** HTTP for development, without authentication. Throws StartupError. */
export function readInsecure(env: Environment, listen: ListenOptions): InsecureHttpConfig {
  readMode(env)
  const warnings: string[] = []
  const ignored = ['MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE'].filter((name) => env[name])
  if (ignored.length > 0)
    warnings.push(`MCP_DEV_INSECURE=1: nobody is authenticated; ${ignored.join(', ')} set but ignored.`)
  warnings.push(...warnOfConfirmTools(env))
  if (env.MCP_PUBLIC_URL) checkUrl(env, 'MCP_PUBLIC_URL')
  const missing = missingOf(env, ['API_KEY', 'API_SECRET'])
  if (env.PCE_HOST && missing.length > 0) throw new StartupError(`Missing required env vars: ${missing.join(', ')}`)
  return {
    mode: 'insecure',
    http: { ...readListen(env, listen), ...(env.MCP_PUBLIC_URL && { publicUrl: env.MCP_PUBLIC_URL }) },
    ...(env.PCE_HOST && { pce: readPce(env, warnings) }),
    ...readCommon(env, warnings),
  }
}

/** HTTP with bearer tokens, once `checkAddressAndOAuth` has passed. Throws StartupError. */
export function readAuthenticated(env: Environment, listen: ListenOptions): PerUserConfig | SharedConfig {
  const mode = checkModeAndKeys(env)
  const warnings: string[] = []
  const hmacKey = readKey(env, 'MCP_CONFIRM_HMAC_KEY')
  const previousHmacKey = readPreviousKey(env, 'MCP_CONFIRM_HMAC_KEY_PREVIOUS', hmacKey)
  const confirmed = [...new Set(readList(env, 'MCP_CONFIRM_TOOLS'))]
  const authenticated = {
    http: { ...readListen(env, listen), publicUrl: env.MCP_PUBLIC_URL!.replace(/\/+$/, '') },
    oauth: readOAuth(env),
    roles: readRoles(env, warnings),
    rates: readRates(env),
    confirm: {
      hmacKey,
      ...(previousHmacKey && { previousHmacKey }),
      ttlSeconds: readInteger(env, 'MCP_CONFIRM_TTL_SECONDS', { min: 1, max: 3600, otherwise: 120 }),
      ...(confirmed.length > 0 && { tools: confirmed }),
    },
  }
  if (mode === 'shared') {
    const pce = readPce(env, warnings)
    const statePath = env.MCP_STATE_PATH || './data/state.db'
    return { mode, pce, statePath, ...authenticated, ...readShared(env, warnings) }
  }
  const ignored = ['PCE_HOST', 'API_KEY', 'API_SECRET'].filter((name) => env[name])
  if (ignored.length > 0)
    warnings.push(`MCP_PCE_MODE=per_user: every user registers a PCE key; ${ignored.join(', ')} set but ignored.`)
  const allowInsecureTls = readBoolean(env, 'MCP_ALLOW_INSECURE_PCE_TLS', false)
  if (allowInsecureTls)
    warnings.push('MCP_ALLOW_INSECURE_PCE_TLS=1: users may register a PCE whose certificate is not verified.')
  const allowedHosts = readHosts(env, 'MCP_ALLOWED_PCE_HOSTS')
  if (allowedHosts.length === 0) warnings.push(...warnOfAnyHost(env))
  const kek = readKey(env, 'MCP_KEK')
  const previousKek = readPreviousKey(env, 'MCP_KEK_PREVIOUS', kek)
  const login = readLogin(env)
  return {
    mode,
    keystore: { path: env.MCP_KEYSTORE_PATH || './data/keystore.db', kek, ...(previousKek && { previousKek }) },
    userPce: {
      allowedHosts,
      allowInsecureTls,
      ...readPceConnection(env, warnings),
    },
    ...(login && { login }),
    ...authenticated,
    ...readShared(env, warnings),
  }
}

/** As `readCommon`, with places for heavy calls that no caller can take all of. Throws StartupError. */
function readShared(env: Environment, warnings: readonly string[]) {
  const { heavy, ...common } = readCommon(env, warnings)
  const perCaller = readInteger(env, 'MCP_HEAVY_CALLS_PER_CALLER', { min: 1, max: 64, otherwise: 2 })
  return { ...common, heavy: { ...heavy, perCaller, queuePerCaller: Math.ceil(heavy.queue / 2) } }
}

/** Warnings for operators whose users may register any host. */
function warnOfAnyHost(env: Environment): string[] {
  const proxied =
    'PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS: the proxy resolves the host names users register, so it must refuse internal addresses itself.'
  const unshown = 'PCE_CLIENT_CERT_FILE is presented only to the hosts in MCP_ALLOWED_PCE_HOSTS, and that is not set.'
  return [...(env.PCE_PROXY_URL ? [proxied] : []), ...(env.PCE_CLIENT_CERT_FILE ? [unshown] : [])]
}

function readListen(env: Environment, listen: ListenOptions) {
  const trustedProxies = readProxies(env, 'MCP_TRUSTED_PROXIES')
  return {
    ...listen,
    allowedHosts: readHosts(env, 'MCP_ALLOWED_HOSTS'),
    maxInFlight: readInteger(env, 'MCP_MAX_IN_FLIGHT', { min: 0, max: 100_000, otherwise: 256 }),
    ...(trustedProxies && { trustedProxies }),
  }
}

/** How access tokens are checked; the URLs were checked before. Throws StartupError. */
function readOAuth(env: Environment): OAuthConfig {
  const requiredScope = env.MCP_OAUTH_REQUIRED_SCOPE || 'svc-mcp.use'
  const requestedScope = env.MCP_OAUTH_REQUEST_SCOPE
  for (const [name, scope] of Object.entries({
    MCP_OAUTH_REQUIRED_SCOPE: requiredScope,
    MCP_OAUTH_REQUEST_SCOPE: requestedScope || requiredScope,
  })) {
    if (!SCOPE_TOKEN.test(scope)) throw new StartupError(`${name} must be a single scope without whitespace`)
  }
  const audience = env.MCP_OAUTH_AUDIENCE!
  if (/^\s|\s$|\p{Cc}/u.test(audience))
    throw new StartupError('MCP_OAUTH_AUDIENCE must not begin or end with whitespace or contain control characters')
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

/**
 * Roles by group. A mapping that nobody can match is allowed, with a warning. Throws StartupError for a role that does not exist.
 */
function readRoles(env: Environment, warnings: string[]): RoleMapping {
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
function readRates(env: Environment): RateLimits {
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
function readLogin(env: Environment): BrowserLoginConfig | undefined {
  const { MCP_OAUTH_CLIENT_ID: clientId, MCP_OAUTH_CLIENT_SECRET: clientSecret } = env
  if (!clientId && clientSecret) throw new StartupError('MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID')
  return clientId ? { clientId, ...(clientSecret && { clientSecret }) } : undefined
}
