import { lstat } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { StartupError, type Fault } from '../../schemas/config.js'

/** A path, and the name of the setting that contains it. */
export interface NamedPath {
  variable: string
  path: string
}

const PATIENCE_MS = 5000

/**
 * Thrown if the file system does not respond for a path. The pending file operation cannot be cancelled, and a normal
 * exit would wait for it, so the process must be killed.
 */
export class HungPathError extends StartupError {}

/**
 * Accesses every path once, so that a lost network mount is noticed: file operations on it never return. They run in
 * the thread pool, so the main thread is not blocked. Rejects with HungPathError if some paths have not responded in
 * time. It does not matter whether a path exists.
 *
 * @param look the file operation, which tests replace.
 */
export async function checkPathsAnswer(
  paths: readonly NamedPath[],
  { patienceMs = PATIENCE_MS, look = (path: string): Promise<unknown> => lstat(path) } = {},
): Promise<void> {
  const waiting = new Set(paths)
  const looks = paths.map(async (named) => {
    await look(named.path).catch(() => undefined)
    waiting.delete(named)
  })
  const done = new AbortController()
  const timeUp = wait(patienceMs, undefined, { signal: done.signal }).catch(() => undefined)
  await Promise.race([Promise.all(looks), timeUp])
  done.abort()
  if (waiting.size > 0) throw new HungPathError(...[...waiting].map((named) => faultOf(named, patienceMs)))
}

const faultOf = ({ variable, path }: NamedPath, patienceMs: number): Fault => ({
  problem: `${variable} '${path}' does not respond: the file system has been silent for ${patienceMs / 1000} s`,
  remedy: 'The mount point is probably gone. Mount it again or use another path.',
})
