/** A proxy as a process of the test's own, with an example configuration that users copy. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { found } from './within.js'

interface Test {
  teardown(fn: () => unknown): void
}

/**
 * The example of that name in deploy/proxy, with lines replaced. Throws Error when one of the patterns does not match exactly once, or when
 * the file does not have so many marks `<-`, the one in its heading included.
 */
export function adaptExample(name: string, marks: number, changes: readonly (readonly [RegExp, string])[]): string {
  let text = readFileSync(fileURLToPath(new URL(`../../../deploy/proxy/${name}`, import.meta.url)), 'utf8')
  const seen = text.match(/<-/g)?.length
  if (seen !== marks) throw new Error(`${name} has ${seen} marks, the heading's included`)
  for (const [line, changed] of changes) {
    if (text.match(line)?.length !== 1) throw new Error(`${name} has not one line ${line.source}`)
    text = text.replace(line, () => changed)
  }
  return text
}

/** A folder for what a proxy writes, with the paths of files in it. It is removed at the end of the test. */
export function proxyFolder(t: Test, name: string) {
  const folder = mkdtempSync(join(tmpdir(), `edge-${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, path: (file: string) => join(folder, file) }
}

/** Starts it and waits until it takes connections. It is stopped at the end of the test. */
export async function runProxy(t: Test, command: string, args: readonly string[], port: number): Promise<void> {
  const child = spawn(command, args, {
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve())
    child.once('error', reject)
  })
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const failed = ended.then(() => {
    throw new Error(`${command} ended: ${stderr}`)
  })
  failed.catch(() => {})
  await found(() => Promise.race([answers(port), failed]), `${command} listens`)
}

/** Whether someone listens there. */
const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const probe = connect(port, '127.0.0.1', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
