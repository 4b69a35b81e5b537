import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** What is shipped, and not its sources through a compiler. */
const CLIENT = 'dist/pce-client/index.js'

/** Runs one measurement of the client in a fresh process and reads the JSON it prints. */
export async function runChild<T>(script: string, before: string[], port: string): Promise<T> {
  const args = [`scripts/bench/${script}`, ...before, CLIENT, port]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as T
}
