import { resolve } from 'node:path'
import { readAllowed } from '../../plugins/context/index.js'
import { findSocketFault } from '../process/listen.js'
import { StartupError, type Fault, type HttpConfig } from '../../schemas/config.js'
import { findPlaceFault } from '../../storage/state/place-file.js'
import type { ListedTool } from '../../tools/listed-tool.js'
import { findFileFaults } from './compose-unauthenticated.js'
import { findReceiverFaults } from './notify.js'
import { findOfferFaults } from './offer-tools.js'
import { findConfirmFaults } from './require-confirmations.js'

/**
 * Finds what would prevent a start on this machine: unusable files, an unusable socket, unknown names of tools. It
 * changes nothing, so that its faults can be reported together with faults in the settings. Problems that show only
 * when a file is opened are reported when that happens.
 */
export function findHttpFaults(config: HttpConfig, tools: readonly ListedTool[]): Fault[] {
  const { socket } = config.http
  const ofSocket = socket === undefined ? undefined : findSocketFault(socket)
  return [
    ...findFileFaults(config),
    ...(ofSocket === undefined ? [] : [ofSocket]),
    ...(config.mode === 'insecure' ? [] : findStateFaults(config)),
    ...findOfferFaults(config, tools),
    ...(config.mode === 'insecure' ? [] : findConfirmFaults(config, tools)),
    ...(config.mode === 'insecure' || config.notify === undefined ? [] : findReceiverFaults(config.notify)),
    ...(config.mode === 'per_user' ? faultsOf(() => readAllowed(config.userPce.allowedHosts)) : []),
  ]
}

function findStateFaults(config: Exclude<HttpConfig, { mode: 'insecure' }>): Fault[] {
  if (config.database !== undefined) return []
  const [path, variable] =
    config.mode === 'shared' ? [config.statePath, 'MCP_STATE_PATH'] : [config.keystore.path, 'MCP_KEYSTORE_PATH']
  if (config.auditLogPath !== undefined && resolve(config.auditLogPath) === resolve(path))
    return [
      {
        problem: `MCP_AUDIT_LOG_PATH and ${variable} are the same file '${path}'`,
        remedy: 'Use a separate file for each.',
      },
    ]
  const fault = findPlaceFault(path, variable)
  return fault === undefined ? [] : [fault]
}

/** Runs `attempt`. If it throws a StartupError, returns the faults in this error. */
function faultsOf(attempt: () => unknown): readonly Fault[] {
  try {
    attempt()
    return []
  } catch (error) {
    if (error instanceof StartupError) return error.faults
    throw error
  }
}
