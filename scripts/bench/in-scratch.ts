import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Scratch {
  /** A directory for everything that the processes of one measurement write. */
  directory: string
  /** Registers a process that is killed when the measurement ends. */
  readonly end: (child: ChildProcess) => void
}

/**
 * Runs one measurement with its own directory. Afterwards, its processes are killed. The directory is removed only when
 * they have ended, because a server that is still stopping would create its audit log again.
 */
export async function inScratch<T>(measure: (scratch: Scratch) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-mcp-bench-'))
  const children: ChildProcess[] = []
  try {
    return await measure({ directory, end: (child) => void children.push(child) })
  } finally {
    await Promise.all(children.map(kill))
    await rm(directory, { recursive: true, force: true })
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}
