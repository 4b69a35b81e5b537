import { lstatSync } from 'node:fs'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'

/**
 * The report of a command to the operator, as lines of the log. `ok` is false if the command stopped half-way and can
 * be run again.
 */
export interface CommandReport {
  lines: { level: 'info' | 'warn' | 'error'; text: string }[]
  ok: boolean
}

/** Starts a list of report lines, with a function that adds one. */
export function collectLines() {
  const lines: CommandReport['lines'] = []
  const say = (level: 'info' | 'warn' | 'error', text: string) => void lines.push({ level, text })
  return { lines, say }
}

/**
 * Requires an existing state file, because a command never creates one. Throws a StartupError that names what could not
 * be done (`verb`).
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
