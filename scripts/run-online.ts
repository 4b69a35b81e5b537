import { spawnSync } from 'node:child_process'

const OFFLINE = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED)\b/

/**
 * Runs a command that may need the package registry. Returns its standard output, or undefined if it failed because the
 * registry cannot be reached. Throws Error with its output if it failed for another reason.
 */
export function runOnline(command: string, args: readonly string[], cwd: string): string | undefined {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status === 0) return stdout
  const said = `${error?.message ?? ''}${stderr}`
  if (OFFLINE.test(said)) return undefined
  throw new Error(`${command} ${args.join(' ')}: ${said}`)
}
