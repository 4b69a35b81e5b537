/** Commands of the pages, run as a reader pastes them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findCommands } from '../../scripts/docs/find-commands.js'

interface Test {
  teardown(fn: () => unknown): void
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const readPage = (path: string) => readFileSync(join(ROOT, path), 'utf8')

export interface Surroundings {
  cwd: string
  env?: Record<string, string | undefined>
  /** What a reader replaces by their own, by what stands on the page. */
  own?: Record<string, string>
}

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export interface Started {
  child: ChildProcess
  /** All it has said so far, on both streams. */
  said(): string
  /** Resolves with the text once this has been said; rejects with all that was said when it ends before. */
  says(words: RegExp): Promise<RegExpExecArray>
  ended: Promise<Ended>
  /** Sends a signal to it and whatever it has started, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>
}

/**
 * Starts the block of this key in a shell. Throws Error when there is none, when something that is to be replaced is not in it, or when
 * an example is left in it that nobody has replaced.
 */
export function startCommand(t: Test, key: string, { cwd, env = {}, own = {} }: Surroundings): Started {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', fillIn(textOf(key), own)], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const output = { stdout: '', stderr: '' }
  const listeners = new Set<() => void>()
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => {
      output[name] += chunk.toString()
      for (const listener of listeners) listener()
    })
  }
  const said = () => output.stdout + output.stderr
  const ended = new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, ...output })))
  const kill = (signal: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, signal)
    } catch {
      // All of it has ended.
    }
  }
  t.teardown(() => {
    kill('SIGKILL')
    return ended
  })
  return {
    child,
    said,
    ended,
    says: (words) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = words.exec(said())
          if (found !== null) resolve(found)
        }
        listeners.add(look)
        look()
        void ended.then(({ code }) => reject(new Error(`${key} ended with ${code}: ${said()}`)))
      }),
    stop(signal = 'SIGTERM') {
      kill(signal)
      return ended
    },
  }
}

/** The block of this key. Throws Error when there is none. */
export function textOf(key: string): string {
  const [path] = key.split('#')
  const block = findCommands(path!, readPage(path!)).find((command) => command.key === key)
  if (block === undefined) throw new Error(`there is no block ${key}`)
  return block.text
}

/** Runs the block of this key to its end; see `startCommand`. Throws Error with what it said when it fails. */
export async function runCommand(t: Test, key: string, surroundings: Surroundings): Promise<string> {
  const { code, stdout, stderr } = await startCommand(t, key, surroundings).ended
  if (code !== 0) throw new Error(`${key} ended with ${code}: ${stdout}${stderr}`)
  return stdout
}

/** A text of a page with a reader's own values. Throws Error for what is not in it, and for an example that is left. */
export function fillIn(text: string, own: Record<string, string>): string {
  let filled = text
  for (const [example, value] of Object.entries(own)) {
    if (!filled.includes(example)) throw new Error(`${example} is not in: ${text}`)
    filled = filled.replaceAll(example, value)
  }
  const code = filled.replaceAll(/(^|\s)#.*$/gm, '')
  if (/…|example\.(com|net|org)|<[\w' ]+>/.test(code)) throw new Error(`an example is left in: ${code}`)
  return filled
}

/** An empty folder that goes with the test. */
export function emptyFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'docs-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Puts a program in the way that stands for one we have not: it notes its arguments, a JSON list for each run, and runs `body`, a piece of
 * shell. Answers what to put before PATH, and a reader of the notes.
 */
export function pretend(t: Test, name: string, body = 'true'): { path: string; calls(): string[][] } {
  const folder = emptyFolder(t)
  const bin = join(folder, 'bin')
  const notes = join(folder, 'calls')
  mkdirSync(bin)
  writeFileSync(notes, '')
  const note = `"${process.execPath}" -e 'require("fs").appendFileSync(process.argv[1], JSON.stringify(process.argv.slice(2)) + "\\n")' '${notes}' "$@"`
  writeFileSync(join(bin, name), `#!/bin/bash\n${note}\n${body}\n`)
  chmodSync(join(bin, name), 0o755)
  return {
    path: `${bin}:${process.env.PATH}`,
    calls: () =>
      readFileSync(notes, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as string[]),
  }
}
