/** Where a stand-in has what a command looks for in the file system of a machine: all of it is below the folder STAND_IN_ROOT. */
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { join } from 'node:path'

export const ROOT = process.env.STAND_IN_ROOT
const PLACES = JSON.parse(process.env.STAND_IN_PLACES)

/** A text with the paths of a machine replaced by those of the test. */
export const place = (text) =>
  Object.entries(PLACES).reduce((placed, [there, here]) => placed.replaceAll(there, here), text)

/** What a file of `NAME=value` lines says. */
export const readVariables = (path) =>
  Object.fromEntries(
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => /^[A-Z]/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )

const pidFile = (name) => join(ROOT, 'pids', name)
export const logOf = (name) => join(ROOT, 'logs', name)
export const running = () => readdirSync(join(ROOT, 'pids'))

/** Starts a process that outlives the command; standard error goes to its log. */
export function start(name, [program, ...args], { env, cwd }) {
  const log = openSync(logOf(name), 'a')
  const child = spawn(program, args, { env, cwd, stdio: ['ignore', log, log], detached: true })
  closeSync(log)
  child.on('error', () => {})
  child.unref()
  writeFileSync(pidFile(name), String(child.pid))
  return child.pid
}

/** Sends the signal; false where no such process runs. */
export function signal(name, which) {
  try {
    process.kill(Number(readFileSync(pidFile(name), 'utf8')), which)
    return true
  } catch {
    return false
  }
}

/** Ends it, and waits for the end. */
export function stop(name) {
  signal(name, 'SIGTERM')
  while (isAlive(name)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  rmSync(pidFile(name), { force: true })
}

/** A process whose parent has not asked how it ended is over all the same. */
function isAlive(name) {
  try {
    const pid = readFileSync(pidFile(name), 'utf8')
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
