import { spawn } from 'node:child_process'

/** serve-pce.mjs in a process of its own, so that its work is not measured as the client's. */
export async function startPce(): Promise<{ port: string; stop: () => void }> {
  const child = spawn(process.execPath, ['scripts/bench/serve-pce.mjs'], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const chunk of child.stdout) return { port: String(chunk).trim(), stop: () => child.kill() }
  throw new Error('serve-pce.mjs ended without listening')
}
