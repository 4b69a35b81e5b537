import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { PceCredentials } from '../../schemas/credentials.js'
import { compiled } from '../suite-folder.js'

/** Credentials whose every part can be looked for in files and messages. */
export const credentialsOf = (secret: string): PceCredentials => ({
  host: 'canary-host.pce.example',
  port: 8443,
  orgId: 7_654_321,
  apiKey: `api_canary_${secret}`,
  apiSecret: secret,
  tlsVerify: true,
  label: 'canary label',
})

/** A directory outside the project that everyone may pass through, removed after the test. */
export function directoryOf(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-mcp-state-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** All bytes of all files in a directory. */
export function bytesOf(directory: string): Buffer {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Buffer.concat(names.map(({ parentPath, name }) => readFileSync(join(parentPath, name))))
}

export interface Said {
  ready?: boolean
  done?: boolean
  opened?: boolean
  refused?: string
  warning?: string
  trying?: number
  stored?: number
  /** Refused, because the key was changed in the meantime. */
  outdated?: number
  read?: number
  secret?: string
  claimed?: string
  rewrapped?: object
  full?: string[]
  refusals?: Record<string, string>
  readable?: string
  relieved?: boolean
}

export interface Worker {
  child: ChildProcess
  /** Everything it has said so far. */
  said: Said[]
  /** Resolves when a line like this has been said, or rejects when the process ends before. */
  until: (matches: (line: Said) => boolean) => Promise<Said>
  /** Lets a waiting worker go on. */
  go: () => void
  /** Resolves when the process has ended and all it said has been read. */
  ended: Promise<{ code: number | null; signal: string | null; stderr: string }>
}

interface Launch {
  /** A shell that runs the worker, for limits that a process cannot give itself. */
  shell?: string
  uid?: number
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Starts a process of its own on a state file; see worker.ts for the tasks. */
export function startWorker(t: Test, task: string, args: Partial<WorkerArguments>, launch: Launch = {}): Worker {
  const node = [process.execPath, compiled('test/state/worker.ts'), task, JSON.stringify(args)]
  // What tap would load into the process ends it at a signal that Node.js itself ignores (SIGXFSZ).
  const shell = `${launch.shell}; unset NODE_OPTIONS; exec "$@"`
  const [command, ...rest] = launch.shell ? ['bash', '-c', shell, 'bash', ...node] : node
  const child = spawn(command!, rest, {
    cwd: ROOT,
    ...(launch.uid !== undefined && { uid: launch.uid, gid: launch.uid }),
  })
  t.teardown(() => void child.kill('SIGKILL'))
  const said: Said[] = []
  const waiting = new Set<() => void>()
  let isOver = false
  let stderr = ''
  child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
  const lines = createInterface({ input: child.stdout })
  const wake = () => waiting.forEach((check) => check())
  lines.on('line', (line) => {
    try {
      said.push(JSON.parse(line) as Said)
    } catch {
      // The last line of a process that was killed while it wrote.
    }
    wake()
  })
  // One that has ended is told to go all the same.
  child.stdin.on('error', () => {})
  const closed = once(child, 'close')
  const ended = Promise.all([closed, once(lines, 'close')]).then(([[code, signal]]) => {
    isOver = true
    wake()
    return { code: code as number | null, signal: signal as string | null, stderr }
  })
  return {
    child,
    said,
    until: (matches) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = said.find(matches)
          if (found === undefined && !isOver) return
          waiting.delete(check)
          if (found) resolve(found)
          else reject(new Error(`the worker ended after ${JSON.stringify(said.slice(-3))}: ${stderr.slice(-2000)}`))
        }
        waiting.add(check)
        check()
      }),
    go: () => void child.stdin.write('go\n'),
    ended,
  }
}

export interface WorkerArguments {
  path: string
  /** base64 */
  kek: string
  previousKek?: string
  /** Tells workers apart, in ids and in credentials. */
  name: string
  owners: number
  /** The first of them. */
  firstOwner?: number
  first: number
  count: number
  umask?: number
}
