import { lstatSync } from 'node:fs'
import { StartupError, type StateFileConfig } from '../../schemas/config.js'

/** What a command has to say to the operator, as lines of the log. `ok` false: it stopped half-way and may be run again. */
export interface CommandReport {
  lines: { level: 'info' | 'warn' | 'error'; text: string }[]
  ok: boolean
}

/** The lines of a report, and what adds one. */
export function collectLines() {
  const lines: CommandReport['lines'] = []
  const say = (level: 'info' | 'warn' | 'error', text: string) => void lines.push({ level, text })
  return { lines, say }
}

/** A command works on the state that servers use, and makes none. Throws StartupError where there is no file to `verb`. */
export function requireState(
  { path, variable, database }: Pick<StateFileConfig, 'path' | 'variable' | 'database'>,
  verb: string,
): void {
  if (database !== undefined) return
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return
  throw new StartupError({
    problem: `${variable} '${path}' does not exist: there is nothing to ${verb}`,
    remedy: 'Give the path that the servers have, and run this on a machine that has the file.',
  })
}
