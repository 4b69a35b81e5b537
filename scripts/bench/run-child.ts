import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { promisify } from 'node:util'

/** What is shipped, and not its sources through a compiler: the client of the current build, with all of that build beside it. */
const CLIENT = leadOn('dist/pce-client/index.js')

/** The module that this one leads to (scripts/build.mjs). */
function leadOn(path: string): string {
  const target = /^export \* from '(.+)'$/m.exec(readFileSync(path, 'utf8'))?.[1]
  if (target === undefined) throw new Error(`${path} leads nowhere: npm run build`)
  return posix.join(posix.dirname(path), target)
}

/** Runs one measurement of the client in a fresh process and reads the JSON it prints. */
export async function runChild<T>(script: string, before: string[], port: string): Promise<T> {
  const args = [`scripts/bench/${script}`, ...before, CLIENT, port]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as T
}
