import { spawnSync } from 'node:child_process'

/** Runs a command and returns its standard output. Throws Error with all its output if it fails. */
export function run(
  command: string,
  args: readonly string[],
  cwd: string,
  { input = '', env = process.env }: { input?: string; env?: NodeJS.ProcessEnv } = {},
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    ...{ cwd, env, input },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stdout + stderr}`)
  return stdout
}
