import { StartupError, type Limits } from '../schemas/config.js'
import { readInteger, type Environment } from './read-values.js'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** What both programs read. `warnings` is what the operator should hear. Throws StartupError. */
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
  return { logLevel, limits, warnings, ...(env.MCP_AUDIT_LOG_PATH && { auditLogPath: env.MCP_AUDIT_LOG_PATH }) }
}
