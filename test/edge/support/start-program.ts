/** svc-mcp-http as a process of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleProgram } from '../../bundle-program.js'
import { listeningOn } from '../../log-lines.js'

interface Test {
  teardown(fn: () => unknown): void
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface Program {
  child: ChildProcess
  pid: number
  /** All it has said so far. */
  output: { stdout: string; stderr: string }
  /** Where it says it listens: a URL that ends in /mcp, or `unix:` and a path. Rejects with its standard error when it ends before. */
  listening: Promise<string>
  ended: Promise<Ended>
  /** Ends it with a signal, and waits. */
  stop: (signal?: NodeJS.Signals) => Promise<Ended>
}

export interface StartOptions {
  args?: readonly string[]
  /** The whole environment, but for PATH. */
  env?: Record<string, string | undefined>
  /** Runs the command line that follows: `['bash', '-c', 'ulimit -f 1; exec "$@"', 'bash']`. */
  through?: readonly string[]
  /** Another release of it, as `bundleRelease` makes one. */
  program?: string
}

/** Starts it in an empty folder of its own; it is killed at the end of the test if it still runs. */
export function startProgram(t: Test, options: StartOptions = {}): Program {
  const { args = [], env = {}, through = [], program = bundleProgram('http') } = options
  const cwd = mkdtempSync(join(tmpdir(), 'edge-cwd-'))
  // What tap would load into the process ends it at a signal that Node.js itself ignores (SIGXFSZ).
  const bare =
    env.NODE_OPTIONS === undefined ? ['env', '-u', 'NODE_OPTIONS'] : ['env', `NODE_OPTIONS=${env.NODE_OPTIONS}`]
  const [command, ...rest] = [...through, ...bare, process.execPath, program, ...args]
  const child = spawn(command!, rest, {
    env: { PATH: process.env.PATH, ...env },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, ...output })),
  )
  const listening = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      output.stderr += chunk.toString()
      const where = listeningOn(output.stderr)
      if (where !== undefined) resolve(where)
    })
    ended.then(({ code }) => reject(new Error(`it ended with ${code}: ${output.stderr}`)), reject)
  })
  listening.catch(() => {})
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(cwd, { recursive: true, force: true })
  })
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  return { child, pid: child.pid!, output, listening, ended, stop }
}
