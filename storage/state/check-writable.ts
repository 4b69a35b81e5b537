import type { Queries } from './run-queries.js'

/** An answer this young is given again: /readyz is asked by anybody, and every check costs a write that waits for the disk. */
const FRESH_MS = 1000
const LOCK_WAIT_MS = 1000

/** The statement that proves that the file can be written: as claims and credentials do, and changing nothing of theirs. */
export const WRITE_MARK = `INSERT OR REPLACE INTO notes VALUES ('checked', hex(randomblob(8)))`

/** Writes a mark to the disk. Whoever asks meanwhile, or within a second, gets the same answer. Rejects with Error. `now` in milliseconds. */
export function checkWritable({ write }: Queries, now: () => number): () => Promise<void> {
  let last: Promise<void> | undefined
  let isRunning = false
  let checkedAt = -Infinity
  return () => {
    const age = now() - checkedAt
    if (last !== undefined && (isRunning || (age >= 0 && age < FRESH_MS))) return last
    isRunning = true
    last = write((sql) => void sql.run(WRITE_MARK), LOCK_WAIT_MS).finally(() => {
      isRunning = false
      checkedAt = now()
    })
    return last
  }
}
