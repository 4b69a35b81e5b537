import {
  StartupError,
  type InsecureHttpConfig,
  type ListenOptions,
  type PerUserConfig,
  type SharedConfig,
} from '../schemas/config.js'
import { readCommon } from './read-common.js'
import { readLogin, readOAuth, readRates, readRoles } from './read-oauth.js'
import { readPce, readPceConnection } from './read-pce.js'
import { readKey, readPreviousKey } from './read-secrets.js'
import { checkUrl, missingOf, readBoolean, readHosts, readInteger, type Environment } from './read-values.js'
import { checkModeAndKeys, readMode } from './startup-gates.js'

/** HTTP for development, without authentication. Throws StartupError. */
export function readInsecure(env: Environment, listen: ListenOptions): InsecureHttpConfig {
  readMode(env)
  const warnings: string[] = []
  const ignored = ['MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE'].filter((name) => env[name])
  if (ignored.length > 0)
    warnings.push(`MCP_DEV_INSECURE=1 wins: ${ignored.join(', ')} are set and ignored, nobody is authenticated.`)
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

/** HTTP with bearer tokens, after the gates that look at addresses and OAuth variables. Throws StartupError. */
export function readAuthenticated(env: Environment, listen: ListenOptions): PerUserConfig | SharedConfig {
  const mode = checkModeAndKeys(env)
  const warnings: string[] = []
  const hmacKey = readKey(env, 'MCP_CONFIRM_HMAC_KEY')
  const previousHmacKey = readPreviousKey(env, 'MCP_CONFIRM_HMAC_KEY_PREVIOUS', hmacKey)
  const authenticated = {
    http: { ...readListen(env, listen), publicUrl: env.MCP_PUBLIC_URL!.replace(/\/+$/, '') },
    oauth: readOAuth(env),
    roles: readRoles(env, warnings),
    rates: readRates(env),
    confirm: {
      hmacKey,
      ...(previousHmacKey && { previousHmacKey }),
      ttlSeconds: readInteger(env, 'MCP_CONFIRM_TTL_SECONDS', { min: 1, max: 3600, otherwise: 120 }),
    },
  }
  if (mode === 'shared') {
    const pce = readPce(env, warnings)
    const statePath = env.MCP_STATE_PATH || './data/state.db'
    return { mode, pce, statePath, ...authenticated, ...readCommon(env, warnings) }
  }
  const ignored = ['PCE_HOST', 'API_KEY', 'API_SECRET'].filter((name) => env[name])
  if (ignored.length > 0)
    warnings.push(`MCP_PCE_MODE=per_user: ${ignored.join(', ')} are set and ignored, every user registers a PCE key.`)
  const allowInsecureTls = readBoolean(env, 'MCP_ALLOW_INSECURE_PCE_TLS', false)
  if (allowInsecureTls)
    warnings.push('MCP_ALLOW_INSECURE_PCE_TLS=1: users may register a PCE whose certificate is not checked.')
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
    ...readCommon(env, warnings),
  }
}

/** What the operator should hear where users may name any host. */
function warnOfAnyHost(env: Environment): string[] {
  const proxied =
    'PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS: the proxy resolves the names that users register and must itself refuse internal addresses.'
  const unshown = 'PCE_CLIENT_CERT_FILE is not shown to PCEs that users choose: it needs MCP_ALLOWED_PCE_HOSTS.'
  return [...(env.PCE_PROXY_URL ? [proxied] : []), ...(env.PCE_CLIENT_CERT_FILE ? [unshown] : [])]
}

function readListen(env: Environment, listen: ListenOptions) {
  return {
    ...listen,
    allowedHosts: readHosts(env, 'MCP_ALLOWED_HOSTS'),
    maxInFlight: readInteger(env, 'MCP_MAX_IN_FLIGHT', { min: 0, max: 100_000, otherwise: 256 }),
  }
}
