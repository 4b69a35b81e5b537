/** Starts a program with a wrong configuration and notes what it says. */
import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleProgram } from '../../bundle-program.js'
import { found } from '../../edge/support/within.js'
import { linesOf, listeningOn } from '../../log-lines.js'
import type { Stage } from './set-stage.js'
import { STARTS, type Answers, type Settings, type Start } from './starts.js'
import { createReader, fill, fillSettings, type Line } from './words.js'
import type { WrongStart } from './wrong-starts.js'

export interface Outcome extends Answers {
  refused: readonly string[]
  warned: readonly string[]
  /** Null where a server was started. */
  exitCode: number | null
}

/** Root may write everywhere, so that nothing would be refused: the programs then run as a user without privileges. */
const UNPRIVILEGED = 65_534
const isRoot = process.geteuid?.() === 0
const USER = isRoot ? UNPRIVILEGED : process.geteuid?.()

/** What comes of the case, in a folder of its own. `right` are the warnings of the start without the fault. */
export async function tryCase(wrong: WrongStart, stage: Stage, right: readonly string[] = []): Promise<Outcome> {
  const { start: name, env = {}, args, make, earlier, ask } = wrong
  const start: Start = STARTS[name]
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'wrong-')))
  const words = { ...stage.values, $DIR: folder, $UID: String(USER) }
  const launched: Launched[] = []
  const launchIn = (more: Settings, options: readonly string[]) => {
    const one = launch(start.program, {
      env: fillSettings({ ...start.env, ...more }, words),
      args: options.map(fill(words)),
      folder,
    })
    launched.push(one)
    return one
  }
  try {
    make?.(folder, stage)
    if (isRoot) giveAway(folder)
    if (earlier !== undefined) {
      const first = launchIn(earlier.env ?? {}, earlier.args ?? start.args ?? [])
      await first.isUp
      if (earlier.stays !== true) await first.end()
    }
    const program = launchIn(env, args ?? start.args ?? [])
    const isServing = await Promise.race([program.isUp.then(() => true), program.ended.then(() => false)])
    const answer = !isServing || ask === undefined ? undefined : await ASKED[ask](program)
    if (isServing) await program.end()
    const exitCode = await program.ended
    const read = createReader(words)
    const lines = linesOf(program.said())
    const saidAt = (isMeant: (level: number) => boolean) =>
      lines.filter(({ level, msg }) => isMeant(level) && !LEFT_OUT.test(msg)).map(read)
    return {
      exitCode: isServing ? null : exitCode,
      refused: saidAt((level) => level > 40),
      warned: saidAt((level) => level === 40).filter((said) => !right.includes(said)),
      ...(answer && { answered: read(answer) }),
    }
  } finally {
    await Promise.all(launched.map((one) => one.end()))
    open(folder)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What every refusal ends with, and what the question of a case leads to. */
const LEFT_OUT = /^(Not started\. |tool call$|not ready$)/

interface Launched {
  child: ChildProcess
  /** Resolves once a server serves; for stdio at once, where its end is not earlier. */
  isUp: Promise<void>
  /** With the exit code. */
  ended: Promise<number | null>
  said: () => string
  /** All answers on standard output so far. */
  answers: () => string
  /** Where a server listens. */
  where: () => string | undefined
  end: () => Promise<unknown>
}

function launch(
  program: Start['program'],
  { env, args, folder }: { env: Record<string, string>; args: readonly string[]; folder: string },
): Launched {
  const file = bundleProgram(program === 'svc-mcp' ? 'stdio' : 'http')
  // What tap would load into the process is not for another user to read.
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, file, ...args], {
    env: { PATH: process.env.PATH, ...env },
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(isRoot && { uid: UNPRIVILEGED, gid: UNPRIVILEGED }),
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stdin.on('error', () => {})
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const isUp = new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
      if (listeningOn(stderr) !== undefined) resolve()
    })
    // A server for one client serves as soon as it answers.
    child.stdout.on('data', () => resolve())
  })
  if (program === 'svc-mcp') child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' })}\n`)
  return {
    child,
    isUp,
    ended,
    said: () => stderr,
    answers: () => stdout,
    where: () => listeningOn(stderr),
    end() {
      if (program === 'svc-mcp') child.stdin.end()
      else child.kill('SIGKILL')
      return ended
    },
  }
}

const ASKED = {
  /** Once the server has said what it found out about its PCE, or about the keys. */
  async readyz({ where, said }: Launched): Promise<Line> {
    const says = (what: RegExp) =>
      found(() => linesOf(wholeLines(said())).some(({ msg }) => what.test(msg)), String(what))
    await says(/^signing keys /)
    await says(/^The PCE |cannot be loaded/)
    const answer = await fetch(new URL('/readyz', where()))
    return { msg: `${answer.status} ${await answer.text()}` }
  },
  async 'check-pce-connection'({ child, answers }: Launched): Promise<Line> {
    const params = { name: 'check-pce-connection', arguments: {} }
    child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`)
    const line = await found(() => wholeLines(answers()).split('\n')[1] || null, 'an answer')
    const { result } = JSON.parse(line) as { result: { content: [{ text: string }] } }
    const { message, hint } = JSON.parse(result.content[0].text) as { message: string; hint?: string }
    return { msg: message, remedy: hint }
  },
} satisfies Record<NonNullable<WrongStart['ask']>, (program: Launched) => Promise<Line>>

const wholeLines = (text: string) => text.slice(0, text.lastIndexOf('\n') + 1)

const below = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))

function giveAway(folder: string): void {
  for (const path of below(folder)) lchownSync(path, UNPRIVILEGED, UNPRIVILEGED)
  chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
}

/** What was closed to everyone would be in the way of its removal. */
function open(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) {
      chmodSync(join(folder, entry.name), 0o700)
      open(join(folder, entry.name))
    }
}
