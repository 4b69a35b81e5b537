import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { StartupError } from '../../schemas/config.js'
import { HungPathError } from './check-paths-answer.js'

/**
 * Logs why a program does not start and ends the process: one line for each fault with its `remedy`, then the warnings,
 * then where to read more. It exits with 1, or kills itself if a thread is blocked by an unresponsive file system,
 * since an exit would wait for that thread.
 *
 * @param help the option of the program that explains its settings.
 */
export async function refuseStart(log: Logger, error: unknown, help: string): Promise<never> {
  if (error instanceof StartupError) {
    for (const { problem, remedy } of error.faults) log.fatal({ remedy }, problem)
    for (const warning of error.warnings) log.warn(warning)
    log.fatal(`Not started. ${help}, and docs/configuration.md lists every setting.`)
  } else log.fatal({ err: error }, 'unexpected error, not started')
  if (error instanceof HungPathError) {
    // The log writes its lines at the end of the turn of the event loop.
    await nextTurn()
    await nextTurn()
    process.kill(process.pid, 'SIGKILL')
  }
  return process.exit(1)
}
