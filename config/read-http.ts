import { ROLES, type Role } from '../schemas/caller.js'
import {
  APPROVAL_METHODS,
  type ApprovalConfig,
  type BrowserLoginConfig,
  type Fault,
  type InsecureHttpConfig,
  type ListenOptions,
  type OAuthConfig,
  type OfferConfig,
  type PceMode,
  type PerUserConfig,
  type RateLimits,
  type RoleMapping,
  type SharedConfig,
  type StateFileConfig,
} from '../schemas/config.js'
import { unreadIn } from './check-names.js'
import { readCommon, readConfirmTools, readPce, readPceConnection, refuseConfirmation } from './read-every-mode.js'
import { refuseOverride } from './read-guardrails.js'
import { readNotify } from './read-notify.js'
import { readKey, readPreviousKey } from './read-secrets.js'
import { readDatabase } from './read-state-url.js'
import {
  checkUrl,
  isLoopback,
  isPlaceholder,
  missingOf,
  placeholderIn,
  readChoice,
  readHosts,
  readInteger,
  readList,
  readProxies,
  readSwitch,
  readUnsafeSwitch,
  shown,
  type Environment,
  type Reading,
} from './read-values.js'

const OAUTH_VARIABLES = ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE']
const PCE_MODES = ['per_user', 'shared'] as const satisfies readonly PceMode[]
/** Matches a single OAuth scope (RFC 6749, 3.3). */
const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/
const USUAL_SCOPE = 'svc-mcp.use'
const MOST_PER_MINUTE = 1_000_000

/**
 * Finds the faults that the HTTP startup gates report. These gates are checks that every HTTP server without
 * MCP_DEV_INSECURE=1 must pass, in the order of S16 and D8: the listening address, the OAuth variables, the mode, the
 * variables that the mode requires, the keys. Each `problem` is worded as in the specification.
 */
export function findAtGates(env: Environment, mode: PceMode | null, { host, socket }: ListenOptions): Fault[] {
  const faults: Fault[] = []
  if (socket === undefined && !isLoopback(host))
    faults.push({
      problem: `Refusing to bind '${host}' without MCP_DEV_INSECURE=1`,
      remedy: 'Listen on 127.0.0.1 (the default) or a --socket, behind a proxy that terminates TLS.',
    })
  const missing = missingOf(env, OAUTH_VARIABLES)
  if (missing.length > 0)
    faults.push({
      problem: `Missing required OAuth env vars: ${missing.join(', ')}`,
      remedy: missing.length === OAUTH_VARIABLES.length ? remedyWithoutMode(env) : REMEDY_OF_OAUTH,
    })
  if (mode === null) faults.push(unknownMode(env))
  if (mode === 'shared') faults.push(...findMissingPce(env))
  if (mode === 'per_user' && !env.MCP_KEK)
    faults.push({
      problem: 'MCP_KEK env var is required',
      remedy:
        'Make it once with openssl rand -base64 32, and keep it: it encrypts the stored PCE keys, which are lost without it.',
    })
  if (!env.MCP_CONFIRM_HMAC_KEY)
    faults.push({
      problem: 'MCP_CONFIRM_HMAC_KEY env var is required',
      remedy: 'Make it once with openssl rand -base64 32; all processes of this server need the same one.',
    })
  return faults
}

const REMEDY_OF_OAUTH =
  'They define who may log in. docs/identity-providers lists their values for Keycloak, Entra ID, Okta, Auth0, Ping and AD FS.'

/**
 * Returns the remedy if no login is configured. The operator is probably trying the server out and does not know
 * MCP_DEV_INSECURE yet.
 */
function remedyWithoutMode(env: Environment): string {
  const trying = 'To try it on this machine without a login, set MCP_DEV_INSECURE=1, never in production'
  if (!env.PCE_HOST) return `${trying}; otherwise docs/authenticated-http.md explains them.`
  return `PCE_HOST is set, and over HTTP a PCE requires a login. ${trying}. For one PCE key behind a login, set MCP_PCE_MODE=shared.`
}

function findMissingPce(env: Environment): Fault[] {
  const remedy = 'In this mode one PCE key from the environment serves everybody: set PCE_HOST, API_KEY and API_SECRET.'
  const missing = missingOf(env, ['API_KEY', 'API_SECRET'])
  const vars = missing.length > 1 ? 'env vars' : 'env var'
  return [
    ...(env.PCE_HOST ? [] : [{ problem: 'MCP_PCE_MODE=shared requires PCE_HOST env var', remedy }]),
    ...(missing.length === 0
      ? []
      : [{ problem: `MCP_PCE_MODE=shared requires ${missing.join(', ')} ${vars}`, remedy }]),
  ]
}

/** Builds the fault for an unknown MCP_PCE_MODE (D11). */
export const unknownMode = ({ MCP_PCE_MODE: named = '' }: Environment): Fault => ({
  problem: `MCP_PCE_MODE '${named}' is unknown: use ${PCE_MODES.join(' or ')}`,
  remedy: 'per_user: every user has a PCE key; shared: one PCE key from the environment serves everybody.',
})

/** Reads MCP_PCE_MODE. Returns null if its value is not the name of a mode (D11). */
export function readMode(env: Environment): PceMode | null {
  const named = env.MCP_PCE_MODE || 'per_user'
  return PCE_MODES.find((known) => known === named) ?? null
}

/** Returns the path of the mode's state file, and the variable that sets this path. */
export const readStatePath = (env: Environment, mode: PceMode): Pick<StateFileConfig, 'path' | 'variable'> =>
  mode === 'shared'
    ? { path: env.MCP_STATE_PATH || './data/state.db', variable: 'MCP_STATE_PATH' }
    : { path: env.MCP_KEYSTORE_PATH || './data/keystore.db', variable: 'MCP_KEYSTORE_PATH' }

/** Reads the configuration of the HTTP server for development, which has no authentication. */
export function readInsecure(reading: Reading, listen: ListenOptions): InsecureHttpConfig {
  const { env, faults, warnings } = reading
  const toldElsewhere = [
    'MCP_CONFIRM_TOOLS',
    'MCP_APPROVAL',
    'MCP_FREEZE_OVERRIDE',
    ...(readMode(env) === null ? ['MCP_PCE_MODE'] : []),
  ]
  const ignored = unreadIn('insecure', env).filter((name) => !toldElsewhere.includes(name))
  if (ignored.length > 0)
    warnings.push(
      `MCP_DEV_INSECURE=1: nobody is authenticated; ${ignored.join(', ')} set but ignored. For logins, unset MCP_DEV_INSECURE.`,
    )
  refuseConfirmation(reading, { instead: 'or unset MCP_DEV_INSECURE and configure logins.' })
  checkPublicUrl(reading)
  const missing = missingOf(env, ['API_KEY', 'API_SECRET'])
  if (env.PCE_HOST && missing.length > 0)
    faults.unshift({
      problem: `Missing required env vars: ${missing.join(', ')}`,
      remedy: 'PCE_HOST is set, so its key is needed too; without PCE_HOST, the server starts without a PCE.',
    })
  if (!env.PCE_HOST && missing.length < 2)
    warnings.push('PCE_HOST is not set, so the API key has no PCE. Tools that need a PCE will say so.')
  return {
    mode: 'insecure',
    http: { ...readListen(reading, listen), ...(env.MCP_PUBLIC_URL && { publicUrl: env.MCP_PUBLIC_URL }) },
    ...(env.PCE_HOST && { pce: readPce(reading) }),
    ...readCommon(reading),
  }
}

/** Reads the configuration of HTTP with bearer tokens. Missing values stay empty here; `findAtGates` reports them. */
export function readAuthenticated(
  reading: Reading,
  mode: PceMode,
  listen: ListenOptions,
): PerUserConfig | SharedConfig {
  const { env, warnings } = reading
  checkPublicUrl(reading)
  checkUrl(reading, 'MCP_OAUTH_ISSUER')
  checkUrl(reading, 'MCP_OAUTH_JWKS_URL')
  const approval = readApproval(reading)
  const needsLogin = approval !== undefined
  const ignored = unreadIn(mode, env).filter((name) => !(needsLogin && OF_LOGIN.test(name)))
  if (ignored.length > 0) {
    const whose = mode === 'shared' ? 'one PCE key serves everybody' : 'every user registers a PCE key'
    const which = env.MCP_PCE_MODE ? `MCP_PCE_MODE=${mode}` : `MCP_PCE_MODE is ${mode} by default`
    warnings.push(`${which}: ${whose}; ${ignored.join(', ')} set but ignored.`)
  }
  const database = readDatabase(reading)
  const { variable } = readStatePath(env, mode)
  if (env.MCP_STATE_URL && env[variable])
    warnings.push(`MCP_STATE_URL: the state is in that database; ${variable} set but ignored.`)
  const hmacKey = readKey(reading, 'MCP_CONFIRM_HMAC_KEY')
  const previousHmacKey = readPreviousKey(reading, 'MCP_CONFIRM_HMAC_KEY_PREVIOUS', hmacKey)
  const confirmed = readConfirmTools(reading)
  const roles = readRoles(reading)
  warnOfApproval(reading, approval, roles)
  if (approval === undefined && !needsApproval(env)) refuseOverride(reading)
  const notify = readNotify(reading)
  const authenticated = {
    ...(database && { database }),
    ...(notify && { notify }),
    http: { ...readListen(reading, listen), publicUrl: (env.MCP_PUBLIC_URL ?? '').replace(/(?<!\/)\/+$/, '') },
    oauth: readOAuth(reading),
    roles,
    ...(reading.env.MCP_SCOPES_FILE && { scopesPath: reading.env.MCP_SCOPES_FILE }),
    rates: readRates(reading),
    confirm: {
      hmacKey,
      ...(previousHmacKey && { previousHmacKey }),
      ttlSeconds: readInteger(reading, 'MCP_CONFIRM_TTL_SECONDS', { min: 1, max: 3600, otherwise: 120 }),
      ...(confirmed && { tools: confirmed }),
      ...(approval && { approval }),
    },
  }
  if (mode === 'shared') {
    const pce = readPce(reading)
    const login = needsLogin ? readLogin(reading) : undefined
    const { path: statePath } = readStatePath(env, mode)
    return { mode, pce, statePath, ...(login && { login }), ...authenticated, ...readShared(reading) }
  }
  const allowInsecureTls = readUnsafeSwitch(reading, 'MCP_ALLOW_INSECURE_PCE_TLS')
  if (allowInsecureTls)
    warnings.push('MCP_ALLOW_INSECURE_PCE_TLS=1: users may register a PCE whose certificate is not verified.')
  const allowedHosts = readHosts(reading, 'MCP_ALLOWED_PCE_HOSTS')
  if (allowedHosts.length === 0) warnings.push(...warnOfAnyHost(env))
  const kek = readKey(reading, 'MCP_KEK')
  if (env.MCP_KEK && kek.equals(hmacKey))
    warnings.push(
      'MCP_KEK and MCP_CONFIRM_HMAC_KEY are the same key, so anyone who learns one has both. Give MCP_CONFIRM_HMAC_KEY a key of its own.',
    )
  const previousKek = readPreviousKey(reading, 'MCP_KEK_PREVIOUS', kek)
  const shared = readShared(reading)
  const login = readLogin(reading)
  if (login === undefined && !needsLogin && !env.MCP_OAUTH_CLIENT_SECRET) warnings.push(warnOfNoLogin(shared.offer))
  return {
    mode,
    keystore: { path: readStatePath(env, mode).path, kek, ...(previousKek && { previousKek }) },
    userPce: {
      allowedHosts,
      allowInsecureTls,
      ...readPceConnection(reading),
    },
    ...(login && { login }),
    ...authenticated,
    ...shared,
  }
}

const OF_LOGIN = /^MCP_OAUTH_CLIENT_(ID|SECRET)(_FILE)?$/

/**
 * Returns true if people approve calls in a browser. Because they must log in to approve a call, the OAuth client of
 * the browser login is then read in every mode.
 */
export const needsApproval = ({ MCP_APPROVAL: method }: Environment): boolean =>
  method !== undefined && method !== 'token' && APPROVAL_METHODS.some((known) => known === method)

/** Reads how people approve calls. Returns undefined if a confirm token is enough. */
function readApproval(reading: Reading): ApprovalConfig | undefined {
  const { env, faults, warnings } = reading
  const method = readChoice(reading, 'MCP_APPROVAL', APPROVAL_METHODS, 'token')
  const ttlSeconds = readInteger(reading, 'MCP_APPROVAL_TTL_SECONDS', { min: 60, max: 86_400, otherwise: 900 })
  const maxAgeSeconds = readInteger(reading, 'MCP_APPROVAL_MAX_AGE_SECONDS', { min: 0, max: 86_400, otherwise: 900 })
  if (method === 'token') {
    const unread = ['MCP_APPROVAL_TTL_SECONDS', 'MCP_APPROVAL_MAX_AGE_SECONDS'].filter((name) => env[name])
    if (unread.length > 0 && (env.MCP_APPROVAL || 'token') === 'token')
      warnings.push(`MCP_APPROVAL is token: a confirm token is enough; ${unread.join(', ')} set but ignored.`)
    return undefined
  }
  if (!env.MCP_OAUTH_CLIENT_ID)
    faults.push({
      problem: `MCP_APPROVAL=${method} requires MCP_OAUTH_CLIENT_ID`,
      remedy:
        'People approve calls on a page after logging in with their browser. Register a client for that with the identity provider, as described in docs/authenticated-http.md.',
    })
  return { method, ttlSeconds, maxAgeSeconds }
}

/** Warns if approvals are configured, but nobody would be able to approve a call. */
function warnOfApproval({ warnings }: Reading, approval: ApprovalConfig | undefined, roles: RoleMapping): void {
  if (approval?.method !== 'two-person' || roles.groups.admin.length > 0 || roles.otherwise === 'admin') return
  warnings.push(
    'MCP_APPROVAL=two-person without MCP_ROLE_GROUPS_ADMIN: nobody is an admin, so nobody can approve a call.',
  )
}

/**
 * Matches a public URL that ends with one of the server's own routes by mistake. Clients would append the route a
 * second time.
 */
const OWN_ROUTE = /\/(mcp|setup|confirm|approve)\/*$/

function checkPublicUrl(reading: Reading): void {
  const { env, faults } = reading
  const url = env.MCP_PUBLIC_URL ?? ''
  const before = faults.length
  checkUrl(reading, 'MCP_PUBLIC_URL')
  const route = OWN_ROUTE.exec(url)?.[1]
  if (faults.length > before || route === undefined) return
  faults.push({
    problem: `MCP_PUBLIC_URL must not end in /${route}, which the server adds itself`,
    remedy: `Write its base: MCP_PUBLIC_URL=${url.replace(OWN_ROUTE, '')}`,
  })
}

/**
 * Reads the settings that all authenticated modes have: the settings of `readCommon`, the maximum share of heavy calls
 * for each caller, and roles.
 */
function readShared(reading: Reading) {
  const { heavy, offer, ...common } = readCommon(reading)
  const perCaller = readInteger(reading, 'MCP_HEAVY_CALLS_PER_CALLER', { min: 1, max: 64, otherwise: 2 })
  return {
    ...common,
    heavy: { ...heavy, perCaller, queuePerCaller: Math.ceil(heavy.queue / 2) },
    offer: { ...offer, ...(readSwitch(reading, 'MCP_HIDE_FORBIDDEN', false) && { hideForbidden: true }) },
  }
}

/** Returns warnings for operators whose users may register any host as their PCE. */
function warnOfAnyHost(env: Environment): string[] {
  const proxied =
    'PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS: the proxy resolves the host names users register, so it must refuse internal addresses itself.'
  const unshown = 'PCE_CLIENT_CERT_FILE is presented only to the hosts in MCP_ALLOWED_PCE_HOSTS, and that is not set.'
  return [...(env.PCE_PROXY_URL ? [proxied] : []), ...(env.PCE_CLIENT_CERT_FILE ? [unshown] : [])]
}

function readListen(reading: Reading, listen: ListenOptions) {
  const trustedProxies = readProxies(reading, 'MCP_TRUSTED_PROXIES')
  const metricsPort = readMetricsPort(reading, listen)
  return {
    ...listen,
    allowedHosts: readHosts(reading, 'MCP_ALLOWED_HOSTS'),
    maxInFlight: readInteger(reading, 'MCP_MAX_IN_FLIGHT', { min: 0, max: 100_000, otherwise: 256 }),
    ...(trustedProxies && { trustedProxies }),
    ...(metricsPort !== undefined && { metricsPort }),
  }
}

const USUAL_METRICS_PORT = 9464

function readMetricsPort(reading: Reading, { port, socket }: ListenOptions): number | undefined {
  const { env, faults } = reading
  if (!env.MCP_METRICS_PORT) return undefined
  const range = { min: 1, max: 65_535, otherwise: USUAL_METRICS_PORT, isOff: true }
  const metricsPort = readInteger(reading, 'MCP_METRICS_PORT', range)
  if (socket === undefined && metricsPort === port)
    faults.push({
      problem: `MCP_METRICS_PORT and --port are both ${port}`,
      remedy: `Metrics need a port of their own, such as MCP_METRICS_PORT=${USUAL_METRICS_PORT}`,
    })
  return metricsPort
}

/** Reads the settings for checking access tokens. The URLs among these settings are not checked here. */
function readOAuth(reading: Reading): OAuthConfig {
  const { env, faults } = reading
  const requiredScope = env.MCP_OAUTH_REQUIRED_SCOPE || USUAL_SCOPE
  if (!SCOPE_TOKEN.test(requiredScope))
    faults.push({
      problem: 'MCP_OAUTH_REQUIRED_SCOPE must be a single scope without whitespace',
      remedy: `It is ${shown(requiredScope)}: write one scope, such as MCP_OAUTH_REQUIRED_SCOPE=${USUAL_SCOPE}`,
    })
  const requestedScope = readRequestedScopes(reading, requiredScope)
  const audience = readClaim(reading, 'MCP_OAUTH_AUDIENCE', 'aud')
  const tokenIssuer = readClaim(reading, 'MCP_OAUTH_TOKEN_ISSUER', 'iss')
  const more = readList(reading, 'MCP_OAUTH_GROUPS_CLAIM')
  return {
    issuer: env.MCP_OAUTH_ISSUER ?? '',
    ...(tokenIssuer.trim() !== '' && { tokenIssuer }),
    jwksUrl: env.MCP_OAUTH_JWKS_URL ?? '',
    audience,
    requiredScope,
    ...(requestedScope && { requestedScope }),
    groupsClaims: [...new Set(['groups', 'roles', ...more])],
  }
}

/** The scopes of OpenID Connect (Core, 5.4 and 11). None of them gives access to this server's API. */
const OPENID_SCOPES = new Set(['openid', 'profile', 'email', 'address', 'phone', 'offline_access'])

/** Reads the scopes that clients are told to request. Returns them separated by single blanks, without duplicates. */
function readRequestedScopes({ env, faults, warnings }: Reading, requiredScope: string): string | undefined {
  const value = env.MCP_OAUTH_REQUEST_SCOPE ?? ''
  const scopes = [...new Set(value.split(' ').filter((scope) => scope !== ''))]
  if (scopes.length === 0) return undefined
  const wrong = scopes.find((scope) => !SCOPE_TOKEN.test(scope))
  if (wrong !== undefined)
    faults.push({
      problem:
        'MCP_OAUTH_REQUEST_SCOPE must be scopes separated by blanks, without quotes, backslashes and other whitespace',
      remedy: `One of them is ${shown(wrong)}: write them such as MCP_OAUTH_REQUEST_SCOPE=openid ${USUAL_SCOPE} offline_access`,
    })
  if (value.includes(','))
    warnings.push('MCP_OAUTH_REQUEST_SCOPE has a comma, which is part of a scope: separate scopes by blanks.')
  if (!scopes.includes(requiredScope) && scopes.every((scope) => OPENID_SCOPES.has(scope)))
    warnings.push(
      `MCP_OAUTH_REQUEST_SCOPE is all that clients request, and it lacks MCP_OAUTH_REQUIRED_SCOPE (${requiredScope}): their tokens will be refused, unless the provider adds it.`,
    )
  return scopes.join(' ')
}

/**
 * Reads a value with which a claim of every access token must be exactly equal. Returns an empty string if the variable
 * is not set.
 */
function readClaim({ env, faults }: Reading, name: string, claim: string): string {
  const value = env[name] ?? ''
  if (isPlaceholder(value)) faults.push(placeholderIn(name))
  else if (value.trim() !== '' && /^\s|\s$|\p{Cc}/u.test(value))
    faults.push({
      problem: `${name} must not begin or end with whitespace or contain control characters`,
      remedy: `It is ${shown(value)}: write it exactly as it is in the ${claim} of the tokens.`,
    })
  return value
}

/** Reads the mapping of groups to roles. If the settings give nobody a role, this is only a warning. */
function readRoles(reading: Reading): RoleMapping {
  const { env, warnings } = reading
  const listOf = (role: Role) => readList(reading, `MCP_ROLE_GROUPS_${role.toUpperCase()}`)
  const groups = { reader: listOf('reader'), operator: listOf('operator'), admin: listOf('admin') }
  const otherwise = readChoice(reading, 'MCP_ROLE_DEFAULT', ROLES, null)
  if (!env.MCP_ROLE_DEFAULT && ROLES.every((role) => groups[role].length === 0)) {
    warnings.push(
      'No MCP_ROLE_GROUPS_READER, _OPERATOR or _ADMIN and no MCP_ROLE_DEFAULT: every caller gets forbidden_no_role.',
    )
  }
  return { groups, otherwise }
}

function readRates(reading: Reading): RateLimits {
  const perMinute = (name: string, otherwise: number) =>
    readInteger(reading, name, { min: 0, max: MOST_PER_MINUTE, otherwise })
  return {
    inFlightPerCaller: readInteger(reading, 'MCP_MAX_IN_FLIGHT_PER_CALLER', { min: 0, max: 100_000, otherwise: 32 }),
    perCaller: perMinute('MCP_RATE_LIMIT_PER_MINUTE', 600),
    confirmPerCaller: perMinute('MCP_CONFIRM_RATE_PER_MINUTE', 10),
    refusedTokensPerAddress: perMinute('MCP_REFUSED_TOKENS_PER_MINUTE', 30),
  }
}

const REGISTER = 'register-pce-credentials'

/**
 * Returns true if users can register a PCE key through their assistant. The choice of toolsets does not affect this
 * (D122).
 */
const isRegisteringOffered = ({ readOnly, tools, excluded }: OfferConfig) =>
  readOnly !== true && (tools?.includes(REGISTER) ?? true) && excluded?.includes(REGISTER) !== true

/** Reads the OAuth client of the browser login. Returns undefined if MCP_OAUTH_CLIENT_ID is not set. */
function readLogin({ env, faults }: Reading): BrowserLoginConfig | undefined {
  const { MCP_OAUTH_CLIENT_ID: clientId, MCP_OAUTH_CLIENT_SECRET: clientSecret } = env
  if (clientId) return { clientId, ...(clientSecret && { clientSecret }) }
  if (clientSecret)
    faults.push({
      problem: 'MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID',
      remedy: 'Set MCP_OAUTH_CLIENT_ID to the client that the secret belongs to.',
    })
  return undefined
}

const warnOfNoLogin = (offer: OfferConfig): string =>
  `No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. ${
    isRegisteringOffered(offer)
      ? 'Users can register a PCE key only with register-pce-credentials, where a model can see it.'
      : 'register-pce-credentials is not offered either, so only a program with an access token can register a PCE key, at /setup.'
  }`
