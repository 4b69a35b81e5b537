import { StartupError, type ListenOptions } from '../schemas/config.js'
import { checkUrl, isLoopback, missingOf, type Environment } from './read-values.js'

const OAUTH_VARIABLES = ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE']
const PCE_MODES = ['per_user', 'shared'] as const

/** Which PCE mode authenticated HTTP runs in. */
export type PceMode = (typeof PCE_MODES)[number]

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
export function checkModeAndKeys(env: Environment): PceMode {
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
