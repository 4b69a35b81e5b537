import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js'

const START_TIMEOUT_MS = 15_000
/** The time, in milliseconds, after which a program that was asked to end is killed. */
const END_TIMEOUT_MS = 5000
/** The toolsets of the demo server: the default toolset, and the toolset that explains why a flow is blocked. */
const TOOLSETS = 'default,explain'
/** Maximum number of characters of a program's log that are kept. They are shown if the program ends unexpectedly. */
const LOG_LENGTH = 4000

/**
 * The environment variables with the settings of the PCE. The demo server gets them, and they are printed for the
 * reader's own client.
 */
export type PceEnvironment = Record<'PCE_HOST' | 'PCE_PORT' | 'PCE_ORG_ID' | 'API_KEY' | 'API_SECRET', string>

/** The folder in which the child programs run, the signal that ends them, and the list of those that were started. */
export interface Stay {
  folder: string
  /** The signal that ends the programs. After it has been aborted, no further program is started. */
  signal: AbortSignal
  /**
   * The programs that were started so far. Each is added immediately after its start, so that it is ended whatever
   * fails later.
   */
  started: Started[]
}

/** A child program that is running. */
export interface Started {
  /** Resolves with a message when the program has ended for any reason. */
  ended: Promise<string>
  /** Asks the program to end, and resolves when it has ended. */
  end: () => Promise<void>
}

/** Starts the simulator on any free port. Rejects with its output if it ends before it listens. */
export async function startSimulator(
  program: URL,
  estate: { seed: number; workloads: number; flows: number; pods: boolean },
  stay: Stay,
): Promise<Started & { url: string; pce: PceEnvironment }> {
  const options = Object.entries(estate).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  )
  const { child, running } = start('the simulated PCE', program, options, {}, stay)
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
 * Starts the HTTP server without authentication, and resolves with its base URL when it is ready. Rejects with the
 * server's output if the server ends or is not ready in time.
 */
export async function startServer(
  program: URL,
  { port, pce }: { port: number; pce: PceEnvironment },
  stay: Stay,
): Promise<Started & { url: string }> {
  const env = { ...pce, MCP_DEV_INSECURE: '1', MCP_TOOLSETS: TOOLSETS }
  const { child, running, log } = start('the server', program, ['--port', String(port)], env, stay)
  const url = `http://127.0.0.1:${port}`
  const late = AbortSignal.timeout(START_TIMEOUT_MS)
  const runs = () => child.exitCode === null && child.signalCode === null
  while (!late.aborted && runs()) {
    const ready = await fetch(`${url}/readyz`, { signal: late }).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return { ...running, url }
    await wait(100)
  }
  if (!runs()) throw new Error(await running.ended)
  await running.end()
  throw new Error(`the server is not ready after ${START_TIMEOUT_MS / 1000} s:\n${log()}`)
}

/**
 * Starts a program. It gets only the given environment variables and those that every child process needs, so that it
 * inherits no settings of other servers. Throws the reason of the signal if the signal is aborted.
 */
function start(
  name: string,
  program: URL,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { folder, signal, started }: Stay,
): { child: ChildProcess; running: Started; log: () => string } {
  signal.throwIfAborted()
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...getDefaultEnvironment(), ...env },
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-LOG_LENGTH)))
  // If this process ends without asking the child to end, the child is killed.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  const exit = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const running = {
    ended: exit.then(([code, by]) => `${name} has ended (${by ?? `exit code ${code}`}):\n${log}`),
    async end() {
      child.kill('SIGTERM')
      const late = new AbortController()
      const killed = wait(END_TIMEOUT_MS, undefined, { signal: late.signal }).then(kill, () => undefined)
      await Promise.race([exit, killed])
      late.abort()
    },
  }
  // The child's standard output, which includes the server's audit log, is discarded.
  child.stdout.resume()
  started.push(running)
  return { child, running, log: () => log }
}
