import { describe, isCrowded, isLate, isLocked, isOfRows } from './connect.js'

/**
 * The number of different callers in a row whose requests must get no answer before this counts as a problem of the
 * database. With fewer, perhaps only the rows of these callers are locked.
 */
const SEVERAL = 3
/**
 * The time, in milliseconds, for which a request that got no answer is counted. After that time, the problem may be
 * over even though no later request has shown it.
 */
const COUNTED_MS = 10_000
/** Minimum interval, in milliseconds, between two log lines about waiting for locked rows. */
const SAID_MS = 60_000

/**
 * The record of problems that make changes unreliable although the database answers. The readiness check and the gate
 * that refuses changing tools both read it, so that they agree.
 */
export interface Problems {
  find: () => Error | null
  /**
   * Records the result of a test whether the database can be written: null if it passed, otherwise the error. A failed
   * test counts as a problem until a later one passes.
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
  /**
   * The callers whose requests got no answer, each with the last error. Cleared as soon as the database answers any
   * caller.
   */
  const unanswered = new Map<string, { at: number; error: Error }>()
  let saidAt = -Infinity

  function noteFailure(error: Error): void {
    // Errors of statements without an answer are ignored here, because `connectDatabase` finds out whether the database
    // answers at all.
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

/**
 * Returns the database's description of the place at which a statement waited for a lock. It names the table but
 * contains no stored value.
 */
const placeOf = (error: Error): string =>
  (error as { where?: string }).where?.split('\n')[0]?.slice(0, 200) || describe(error)
