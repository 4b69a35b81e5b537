import { spawn } from 'node:child_process'

/**
 * Starts a PCE that serves prepared answers. It is a separate process, so that its work does not count as work of the
 * client. `script` is one of the scripts in this folder; it prints its port when it listens.
 */
export async function startPce(
  script = 'serve-pce.mjs',
  args: readonly string[] = [],
): Promise<{ port: string; stop: () => void }> {
  const compiler = script.endsWith('.ts') ? ['--import', 'tsx'] : []
  const child = spawn(process.execPath, [...compiler, `scripts/bench/${script}`, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const chunk of child.stdout) return { port: String(chunk).trim(), stop: () => child.kill() }
  throw new Error(`${script} ended without listening`)
}
