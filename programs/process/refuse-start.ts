import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { StartupError } from '../../schemas/config.js'
import { HungPathError } from './check-paths-answer.js'

/**
 * Tells why a program does not start, each fault as a line of its own with its `remedy`, then the warnings, at the end where to read on,
 * and ends the process: with 1, or by a kill where a thread waits for a file system that does not answer, since an exit would wait for the
 * thread.
 *
 * @param help which option of the program explains its settings.
 */
export async function refuseStart(log: Logger, error: unknown, help: string): Promise<never> {
  if (error instanceof StartupError) {
    for (const { problem, remedy } of error.faults) log.fatal({ remedy }, problem)
    for (const warning of error.warnings) log.warn(warning)
    log.fatal(`Not started. ${help}, docs/configuration.md every setting.`)
  } else log.fatal({ err: error }, 'unexpected error, not started')
  if (error instanceof HungPathError) {
    // The log writes at the end of the turn.
    await nextTurn()
    await nextTurn()
    process.kill(process.pid, 'SIGKILL')
  }
  return process.exit(1)
}
