import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readPce } from './config/read-pce.js'
import { checkUrl, missingOf, readHosts, readInteger, type Environment } from './config/read-values.js'
import { checkMode, refuseAuthenticated } from './config/startup-gates.js'
import {
  StartupError,
  type Config,
  type InsecureHttpConfig,
  type Limits,
  type ListenOptions,
  type StdioConfig,
} from './schemas/config.js'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * The environment of the process over that of a `.env` file in the working directory, where there is one. The only place that
 * reads either. Throws StartupError when there is a file that cannot be read.
 */
export function readEnvironment(): Environment {
  let text = ''
  try {
    text = readFileSync('.env', 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') throw new StartupError(`Cannot read .env: ${code}`)
  }
  const set = Object.entries(process.env).filter(([, value]) => value !== '')
  return { ...parseEnv(text), ...Object.fromEntries(set) }
}

/**
 * The configuration of one program, or StartupError with the line for standard error. HTTP without MCP_DEV_INSECURE=1 never gets
 * one in this release: its startup gates run in the order of design decision 8, and the last line says so.
 */
export function readConfig(transport: 'stdio', env: Environment): StdioConfig
export function readConfig(transport: 'http', env: Environment, listen: ListenOptions): InsecureHttpConfig
export function readConfig(transport: 'stdio' | 'http', env: Environment, listen?: ListenOptions): Config {
  if (transport === 'http') return readHttp(env, listen!)
  const missing = missingOf(env, ['PCE_HOST', 'API_KEY', 'API_SECRET'])
  if (missing.length > 0) throw new StartupError(`Missing required env vars: ${missing.join(', ')}`)
  const warnings: string[] = []
  return { mode: 'stdio', pce: readPce(env, warnings), ...readCommon(env, warnings) }
}

function readHttp(env: Environment, listen: ListenOptions): InsecureHttpConfig {
  if (env.MCP_DEV_INSECURE !== '1') throw refuseAuthenticated(env, listen)
  checkMode(env)
  const warnings: string[] = []
  const ignored = ['MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL', 'MCP_OAUTH_AUDIENCE'].filter((name) => env[name])
  if (ignored.length > 0)
    warnings.push(`MCP_DEV_INSECURE=1 wins: ${ignored.join(', ')} are set and ignored, nobody is authenticated.`)
  if (env.MCP_PUBLIC_URL) checkUrl(env, 'MCP_PUBLIC_URL')
  const missing = missingOf(env, ['API_KEY', 'API_SECRET'])
  if (env.PCE_HOST && missing.length > 0) throw new StartupError(`Missing required env vars: ${missing.join(', ')}`)
  return {
    mode: 'insecure',
    http: {
      ...listen,
      allowedHosts: readHosts(env, 'MCP_ALLOWED_HOSTS'),
      maxInFlight: readInteger(env, 'MCP_MAX_IN_FLIGHT', { min: 0, max: 100_000, otherwise: 256 }),
      ...(env.MCP_PUBLIC_URL && { publicUrl: env.MCP_PUBLIC_URL }),
    },
    ...(env.PCE_HOST && { pce: readPce(env, warnings) }),
    ...readCommon(env, warnings),
  }
}

function readCommon(env: Environment, warnings: readonly string[]) {
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
  return { logLevel, limits, warnings, ...(env.MCP_AUDIT_LOG_PATH && { auditLogPath: env.MCP_AUDIT_LOG_PATH }) }
}
