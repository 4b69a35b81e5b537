import { describe, isCrowded, isLate, isLocked, isOfRows } from './connect.js'

/**
 * Minimum number of different callers in a row whose requests must get no answer before this counts as a problem of the
 * database. With fewer callers, perhaps only their own rows are locked.
 */
const SEVERAL = 3
/**
 * The time, in milliseconds, for which a request without an answer is counted. After that, the problem may be over,
 * even if no other request has shown it.
 */
const COUNTED_MS = 10_000
/** Minimum interval, in milliseconds, between two log lines about locks. */
const SAID_MS = 60_000

/**
 * The record of problems that make changes unreliable although the database answers. Both readiness and the gate of
 * changing tools use it, so that they agree.
 */
export interface Problems {
  find: () => Error | null
  /**
   * Records the result of a write check: null if it passed, otherwise the error. Only a later write check ends the
   * problem.
   */
  noteWrite: (error: Error | null) => void
  /** Records the result of a heartbeat: null if it succeeded, otherwise the error. */
  noteHeartbeat: (error: Error | null) => void
  /**
   * Records the result of asking the database to admit a request of this caller: null if it answered, otherwise the
   * error.
   */
  noteAdmission: (caller: string, error: Error | null) => void
}

/** Creates the record of problems. `warn` receives a line when a request has waited in vain for a lock. */
export function noteProblems(warn: (line: string) => void): Problems {
  let unwritable: Error | null = null
  let failed: Error | null = null
  /** The callers whose requests got no answer since the last answer to any caller, each with the last error. */
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

/** Returns the database's description of where a statement waited. It names the table but contains no value. */
const placeOf = (error: Error): string =>
  (error as { where?: string }).where?.split('\n')[0]?.slice(0, 200) || describe(error)
