import { StartupError, type HeavyConfig, type Limits, type PceFromEnvironment } from '../schemas/config.js'
import { readBoolean, readInteger, type Environment } from './read-values.js'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** What both programs read. `warnings` go to the operator at start-up. Throws StartupError. */
export function readCommon(env: Environment, warnings: readonly string[]) {
  const logLevel = env.MCP_LOG_LEVEL || 'info'
  if (!LOG_LEVELS.includes(logLevel)) throw new StartupError(`MCP_LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`)
  const limits: Limits = {
    responseBudgetBytes: readInteger(env, 'MCP_RESPONSE_BUDGET_BYTES', { min: 1000, max: 800_000, otherwise: 80_000 }),
    trafficQueryTimeoutSeconds: readInteger(env, 'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS', {
      min: 1,
      max: 3600,
      otherwise: 600,
    }),
  }
  return {
    logLevel,
    limits,
    heavy: readHeavy(env),
    warnings,
    ...(env.MCP_AUDIT_LOG_PATH && { auditLogPath: env.MCP_AUDIT_LOG_PATH }),
  }
}

/** One caller has all places here; the authenticated modes share them out. Throws StartupError. */
function readHeavy(env: Environment): HeavyConfig {
  const max = readInteger(env, 'MCP_HEAVY_CALLS', { min: 1, max: 64, otherwise: 4 })
  const queue = readInteger(env, 'MCP_HEAVY_QUEUE', { min: 0, max: 1000, otherwise: 16 })
  const memoryMb = readInteger(env, 'MCP_HEAVY_MEMORY_MIB', { min: 64, max: 16_384, otherwise: 512 })
  return { max, perCaller: max, queue, queuePerCaller: queue, memoryMb }
}

/** What an operator should know who asks for confirmations where nobody logs in (D9). */
export const warnOfConfirmTools = (env: Environment): string[] =>
  env.MCP_CONFIRM_TOOLS
    ? [
        'MCP_CONFIRM_TOOLS is ignored: without a login nobody can confirm a call, and every tool runs when it is called.',
      ]
    : []

/**
 * The PCE of the environment; PCE_HOST, API_KEY and API_SECRET must be set. Adds to `warnings` where the operator should know.
 * Throws StartupError for malformed values.
 */
export function readPce(env: Environment, warnings: string[]): PceFromEnvironment {
  return {
    url: env.PCE_HOST!,
    port: readPcePort(env),
    orgId: String(readInteger(env, 'PCE_ORG_ID', { min: 1, max: Number.MAX_SAFE_INTEGER, otherwise: 1 })),
    apiKey: env.API_KEY!,
    apiSecret: env.API_SECRET!,
    ...readPceConnection(env, warnings),
  }
}

/** How a PCE is reached in any mode, with anyone's key (D10). Throws StartupError for malformed values. */
export function readPceConnection(env: Environment, warnings: string[]): Pick<PceFromEnvironment, 'tls' | 'proxyUrl'> {
  const verify = readBoolean(env, 'PCE_TLS_VERIFY', true)
  if (!verify)
    warnings.push(
      "PCE_TLS_VERIFY=false: the PCE's certificate is not verified, so anyone on the network path can impersonate it.",
    )
  if (env.PCE_CLIENT_KEY_FILE && !env.PCE_CLIENT_CERT_FILE)
    throw new StartupError('PCE_CLIENT_KEY_FILE requires PCE_CLIENT_CERT_FILE')
  if (env.PCE_PROXY_URL && !/^https?:\/\/[^/]/i.test(env.PCE_PROXY_URL))
    throw new StartupError('PCE_PROXY_URL must be an http or https URL')
  return {
    tls: {
      verify,
      ...(env.PCE_CA_FILE && { caFile: env.PCE_CA_FILE }),
      ...(env.PCE_CLIENT_CERT_FILE && { clientCertFile: env.PCE_CLIENT_CERT_FILE }),
      ...(env.PCE_CLIENT_KEY_FILE && { clientKeyFile: env.PCE_CLIENT_KEY_FILE }),
    },
    ...(env.PCE_PROXY_URL && { proxyUrl: env.PCE_PROXY_URL }),
  }
}

/** A port in the address counts when PCE_PORT is not set, and must agree with it when it is. */
function readPcePort(env: Environment): string {
  const address = env.PCE_HOST!
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `https://${address}`
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new StartupError('PCE_HOST must be a host or an http(s) URL, without user name and password')
  }
  const written = /^[^/?#]*:(\d+)(?:[/?#]|$)/.exec(withScheme.slice(withScheme.indexOf('//') + 2))?.[1]
  const port = String(readInteger(env, 'PCE_PORT', { min: 1, max: 65_535, otherwise: Number(written ?? 443) }))
  if (written !== undefined && Number(written) !== Number(port)) {
    throw new StartupError(`PCE_HOST names port ${written}, but PCE_PORT is ${port}`)
  }
  return port
}
