import { StartupError, type ListenOptions } from '../schemas/config.js'
import { readPce } from './read-pce.js'
import { checkUrl, isLoopback, missingOf, type Environment } from './read-values.js'

const OAUTH_VARIABLES = ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE']
const PCE_MODES = ['per_user', 'shared']

/**
 * Why HTTP without MCP_DEV_INSECURE=1 does not start: first what is missing, in the order of the gates (specification, part 5, item
 * 8; design decision 8), then what is malformed; and at last that the authenticated modes are not part of this release.
 */
export function refuseAuthenticated(env: Environment, { host, socket }: ListenOptions): StartupError {
  if (socket === undefined && !isLoopback(host))
    return new StartupError(`Refusing to bind '${host}' without MCP_DEV_INSECURE=1`)
  const missing = missingOf(env, OAUTH_VARIABLES)
  if (missing.length > 0) return new StartupError(`Missing required OAuth env vars: ${missing.join(', ')}`)
  checkMode(env)
  const isShared = env.MCP_PCE_MODE === 'shared'
  if (isShared && !env.PCE_HOST) return new StartupError('MCP_PCE_MODE=shared requires PCE_HOST env var')
  const missingKeys = isShared ? missingOf(env, ['API_KEY', 'API_SECRET']) : []
  if (missingKeys.length > 0) {
    return new StartupError(
      `MCP_PCE_MODE=shared requires ${missingKeys.join(', ')} env var${missingKeys.length > 1 ? 's' : ''}`,
    )
  }
  const keys = isShared ? ['MCP_CONFIRM_HMAC_KEY'] : ['MCP_KEK', 'MCP_CONFIRM_HMAC_KEY']
  for (const key of keys) if (!env[key]) return new StartupError(`${key} env var is required`)

  for (const url of ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL']) checkUrl(env, url)
  if (isShared) readPce(env, [])
  for (const key of keys) checkKey(env, key)
  return new StartupError(
    'Authenticated HTTP is not part of this release. For development start with MCP_DEV_INSECURE=1; on one machine use stdio (svc-mcp).',
  )
}

/** Throws StartupError for a mode that does not exist (design decision 11). */
export function checkMode(env: Environment): void {
  const mode = env.MCP_PCE_MODE || 'per_user'
  if (!PCE_MODES.includes(mode))
    throw new StartupError(`MCP_PCE_MODE '${mode}' is unknown: use ${PCE_MODES.join(' or ')}`)
}

/** Strict base64 of 32 bytes (specification, part 8). The value itself is never part of a message. */
function checkKey(env: Environment, name: string): void {
  const value = env[name] ?? ''
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length !== 32 || bytes.toString('base64') !== value)
    throw new StartupError(`${name} must be base64 of 32 random bytes`)
  if (bytes.every((byte) => byte === 0)) throw new StartupError(`${name} must be 32 random bytes, not zeros`)
}
