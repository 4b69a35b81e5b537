import { describe, isCrowded, isLate, isLocked, isOfRows } from './connect.js'

/** As many callers in a row without an answer are a problem of the database, not of their rows. */
const SEVERAL = 3
/** The time in milliseconds for which callers without an answer count, since no others may come while they do. */
const COUNTED_MS = 10_000
/** The shortest time in milliseconds between two lines about locks. */
const SAID_MS = 60_000

/**
 * Keeps why changes cannot be relied on although the database answers. Readiness and the gate of changing tools both
 * ask here, so that they agree.
 */
export interface Problems {
  find: () => Error | null
  /** Notes whether the write check has passed: null, or why not. Nothing else ends what it has found. */
  noteWrite: (error: Error | null) => void
  /** Notes whether the heartbeat has passed: null, or why not. */
  noteHeartbeat: (error: Error | null) => void
  /** Notes whether a request of this caller was admitted: null, or why not. */
  noteAdmission: (caller: string, error: Error | null) => void
}

/** Creates the record of problems. `warn` receives a line when somebody has to wait for a lock. */
export function noteProblems(warn: (line: string) => void): Problems {
  let unwritable: Error | null = null
  let failed: Error | null = null
  /** The callers that got no answer since another one got one, with the last error of each. */
  const unanswered = new Map<string, { at: number; error: Error }>()
  let saidAt = -Infinity

  function noteFailure(error: Error): void {
    // If a statement got no answer in time, `connectDatabase` finds out whether the database answers at all.
    if (!isCrowded(error) && !isLate(error) && !isLocked(error) && !isOfRows(error)) failed = error
  }

  function tellOfLock(error: Error): void {
    if (performance.now() - saidAt < SAID_MS) return
    saidAt = performance.now()
    warn(
      `A request waited in vain for a lock in the state database: ${placeOf(error)}. Other requests of its caller may be refused; pg_locks and pg_stat_activity say which session holds the lock.`,
    )
  }

  function findUnanswered(): Error | null {
    const now = performance.now()
    for (const [caller, { at }] of unanswered) if (now - at > COUNTED_MS) unanswered.delete(caller)
    return unanswered.size < SEVERAL ? null : [...unanswered.values()].at(-1)!.error
  }

  return {
    find: () => unwritable ?? failed ?? findUnanswered(),
    noteWrite(error) {
      unwritable = error
      if (error === null) failed = null
    },
    noteHeartbeat(error) {
      if (error === null) failed = null
      else noteFailure(error)
    },
    noteAdmission(caller, error) {
      if (error === null) {
        failed = null
        unanswered.clear()
        return
      }
      noteFailure(error)
      if (isLocked(error)) tellOfLock(error)
      if (isLocked(error) || isLate(error)) unanswered.set(caller, { at: performance.now(), error })
    },
  }
}

/** Returns where a statement waited, in the words of the database, which name the table and no value. */
const placeOf = (error: Error): string =>
  (error as { where?: string }).where?.split('\n')[0]?.slice(0, 200) || describe(error)
