import { StartupError, type StateFileConfig } from '../../schemas/config.js'
import { backUpState } from '../../storage/state/back-up.js'
import { SCHEMA_VERSION } from '../../storage/state/tables.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'

/**
 * Runs `svc-mcp-http backup-state FILE`: copies the state file, even while servers are running. Throws StartupError if
 * there is no state file, or if `target` exists or cannot be written.
 */
export function backUpStateFile(config: StateFileConfig, target: string): CommandReport {
  if (config.database !== undefined)
    throw new StartupError({
      problem: 'MCP_STATE_URL: the state is in a database, not in a file',
      remedy: 'Back it up with the tools of PostgreSQL, such as pg_dump --schema=svc_mcp: docs/operations.md.',
    })
  requireState(config, 'back up')
  const { lines, say } = collectLines()
  const { path, variable, mode } = config
  const bytes = backUpState(path, target, { variable, warn: (line) => say('warn', line) })
  say('info', `'${path}' is backed up to '${target}' (${Math.ceil(bytes / 1024)} KiB, schema ${SCHEMA_VERSION})`)
  if (mode === 'per_user')
    say('info', 'The PCE keys in it can only be decrypted with MCP_KEK: back that up too, in another place')
  return { lines, ok: true }
}
