import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

const START_TIMEOUT_MS = 15_000
/** The fifty tools, and those that say why. */
const TOOLSETS = 'default,explain'

/** The environment a PCE is reached with: what the demo server gets and what it prints for the reader's own client. */
export type PceEnvironment = Record<'PCE_HOST' | 'PCE_PORT' | 'PCE_ORG_ID' | 'API_KEY' | 'API_SECRET', string>

/**
 * Starts the built HTTP server without authentication and resolves with its base URL once it is ready.
 * Throws Error with what the server wrote when it ends first.
 */
export async function startServer(port: number, pce: PceEnvironment): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, ['dist/http.js', '--port', String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...pce, MCP_DEV_INSECURE: '1', MCP_TOOLSETS: TOOLSETS },
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4000)))
  const url = `http://127.0.0.1:${port}`
  const giveUpAt = Date.now() + START_TIMEOUT_MS
  while (Date.now() < giveUpAt && child.exitCode === null) {
    const ready = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return { url, child }
    await wait(100)
  }
  child.kill()
  throw new Error(`the server did not start:\n${log}`)
}
