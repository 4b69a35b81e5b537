import { lstatSync } from 'node:fs'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'

/**
 * The report of a command, as lines that are logged for the operator. `ok` is false if the command did only a part of
 * its work and must be run again.
 */
export interface CommandReport {
  lines: { level: 'info' | 'warn' | 'error'; text: string }[]
  ok: boolean
}

/** Creates an empty report, and a function that adds a line to it. */
export function collectLines() {
  const lines: CommandReport['lines'] = []
  const say = (level: 'info' | 'warn' | 'error', text: string) => void lines.push({ level, text })
  return { lines, say }
}

/**
 * Throws a StartupError if there is no state file, because commands never create one. Its message says that there is
 * nothing to `<verb>`.
 */
export function requireState(
  { path, variable, database }: Pick<StateFileConfig, 'path' | 'variable' | 'database'>,
  verb: string,
): void {
  if (database !== undefined) return
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return
  throw new StartupError({
    problem: `${variable} '${path}' does not exist: there is nothing to ${verb}`,
    remedy: 'Use the path that the servers use, and run this on a machine with the file.',
  })
}
