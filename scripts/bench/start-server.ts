import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { choosePort } from '../../programs/process/choose-port.js'
import type { Scratch } from './in-scratch.js'

const BETWEEN_LOOKS_MS = 50
/**
 * Maximum number of requests for the readiness. They take over half a minute, because a server that migrates a database
 * on a busy machine takes seconds.
 */
const ATTEMPTS = 600

export interface StartedServer {
  url: string
  pid: number
  /** Stops the server as an operator would, and resolves when it has ended. */
  stop(): Promise<void>
}

/**
 * Starts the built server with its log, audit log and state in the scratch directory, and waits until it is ready.
 * `program` are the arguments of Node.js that start it, and `environment` is called with its URL. Throws Error if the server does not start.
 */
export async function startServer(
  { directory, end }: Scratch,
  name: string,
  environment: (url: string) => Record<string, string>,
  program: readonly string[] = ['dist/http.js'],
): Promise<StartedServer> {
  const port = await choosePort(0)
  const url = `http://127.0.0.1:${port}`
  const log = openSync(join(directory, `${name}.log`), 'a')
  const process = spawn(globalThis.process.execPath, [...program, '--port', String(port)], {
    stdio: ['ignore', log, log],
    env: {
      PATH: globalThis.process.env.PATH,
      MCP_AUDIT_LOG_PATH: join(directory, `${name}-audit.log`),
      ...environment(url),
    },
  })
  end(process)
  const stop = async () => {
    const exit = once(process, 'exit')
    process.kill('SIGTERM')
    await exit
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (process.exitCode !== null) break
    const ready = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return { url, pid: process.pid!, stop }
    await wait(BETWEEN_LOOKS_MS)
  }
  throw new Error('the server did not become ready; was it built? (npm run build)')
}
