import type { Logger } from 'pino'
import { StartupError } from '../schemas/config.js'

/**
 * Tells why a program does not start: each fault as a line of its own, with its `remedy`, and at the end where to read on.
 *
 * @param help which option of the program explains its settings.
 */
export function tellWhyNotStarted(log: Logger, error: unknown, help: string): void {
  if (!(error instanceof StartupError)) return log.fatal({ err: error }, 'unexpected error, not started')
  for (const { problem, remedy } of error.faults) log.fatal({ remedy }, problem)
  log.fatal(`Not started. ${help}, docs/configuration.md every setting.`)
}
