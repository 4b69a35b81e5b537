import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { StartupError } from '../../schemas/config.js'
import { HungPathError } from './check-paths-answer.js'

/**
 * Logs why a program does not start, and ends the process. There is one line for each fault with its `remedy`, then the
 * warnings, then where to read more. The exit code is 1. If a file system does not respond and blocks a thread, the
 * process kills itself instead, because an exit would wait for this thread.
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
    // The log lines are written at the end of the current turn of the event loop, so the process is killed only after
    // that.
    await nextTurn()
    await nextTurn()
    process.kill(process.pid, 'SIGKILL')
  }
  return process.exit(1)
}
