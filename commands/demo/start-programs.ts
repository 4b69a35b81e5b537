import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js'

const START_TIMEOUT_MS = 15_000
/** What a program that was asked to end has until it is ended. */
const END_TIMEOUT_MS = 5000
/** The fifty tools, and those that say why. */
const TOOLSETS = 'default,explain'
/** Characters of a program's log that are kept for the case that it ends. */
const LOG_LENGTH = 4000

/** The environment a PCE is reached with: what the demo server gets and what it prints for the reader's own client. */
export type PceEnvironment = Record<'PCE_HOST' | 'PCE_PORT' | 'PCE_ORG_ID' | 'API_KEY' | 'API_SECRET', string>

/** A program that runs. */
export interface Started {
  /** Resolves with what to say when it has ended, whoever wanted it. */
  ended: Promise<string>
  /** Asks it to end, and waits until it has. */
  end: () => Promise<void>
}

/**
 * Starts the simulator on any free port. Rejects with what it said when it ends before it listens.
 *
 * @param started gets the program before anything can go wrong.
 */
export async function startSimulator(
  program: URL,
  { folder, ...estate }: { seed: number; workloads: number; flows: number; folder: string },
  started: Started[],
): Promise<Started & { url: string; pce: PceEnvironment }> {
  const options = Object.entries(estate).flatMap(([name, value]) => [`--${name}`, String(value)])
  const { child, running } = start('the simulated PCE', program, options, { folder }, started)
  for await (const line of createInterface({ input: child.stdout! })) {
    const facts = JSON.parse(line) as Record<'url' | 'pce_host' | 'api_key' | 'api_secret', string> &
      Record<'pce_port' | 'org_id', number>
    const pce = {
      PCE_HOST: facts.pce_host,
      PCE_PORT: String(facts.pce_port),
      PCE_ORG_ID: String(facts.org_id),
      API_KEY: facts.api_key,
      API_SECRET: facts.api_secret,
    }
    return { ...running, url: facts.url, pce }
  }
  throw new Error(await running.ended)
}

/**
 * Starts the HTTP server without authentication and resolves with its base URL once it is ready. Rejects with what it wrote when it ends
 * first or is not ready in time.
 */
export async function startServer(
  program: URL,
  { port, pce, folder }: { port: number; pce: PceEnvironment; folder: string },
  started: Started[],
): Promise<Started & { url: string }> {
  const env = { ...pce, MCP_DEV_INSECURE: '1', MCP_TOOLSETS: TOOLSETS }
  const { child, running } = start('the server', program, ['--port', String(port)], { folder, env }, started)
  const url = `http://127.0.0.1:${port}`
  const giveUpAt = Date.now() + START_TIMEOUT_MS
  while (Date.now() < giveUpAt && child.exitCode === null) {
    const ready = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return { ...running, url }
    await wait(100)
  }
  await running.end()
  throw new Error(await running.ended)
}

/** With what a child needs of the environment, and no settings of other servers in it. */
function start(
  name: string,
  program: URL,
  args: readonly string[],
  { folder, env = {} }: { folder: string; env?: Record<string, string> },
  started: Started[],
): { child: ChildProcess; running: Started } {
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...getDefaultEnvironment(), ...env },
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-LOG_LENGTH)))
  const exit = once(child, 'close')
  const running = {
    ended: exit.then(() => `${name} has ended:\n${log}`),
    async end() {
      child.kill('SIGTERM')
      const late = new AbortController()
      const kill = wait(END_TIMEOUT_MS, undefined, { signal: late.signal }).then(
        () => child.kill('SIGKILL'),
        () => undefined,
      )
      await Promise.race([exit, kill])
      late.abort()
    },
  }
  // The audit log of the server goes there too; nobody reads it.
  child.stdout.resume()
  started.push(running)
  return { child, running }
}
