import { lstat } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { StartupError, type Fault } from '../../schemas/config.js'

/** A setting that names a file. */
export interface NamedPath {
  variable: string
  path: string
}

const PATIENCE_MS = 5000

/**
 * A path that does not answer. The operation that waits for it cannot be taken back, and a process that exits waits for its threads: only a
 * kill ends it.
 */
export class HungPathError extends StartupError {}

/**
 * Looks at every path once, in threads of the pool: on a network mount that is gone, whatever is done with a file never ends. Rejects with
 * HungPathError, in time, for those that have not answered; what an answer says is no concern here.
 *
 * @param look replaced in tests.
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
  problem: `${variable} '${path}' does not answer: the file system has said nothing for ${patienceMs / 1000} s`,
  remedy: 'It is on a mount that is gone, most likely: mount it again, or give a path elsewhere.',
})
