import type { ToolContext } from '../../../domain/call.js'
import type { HeavyConfig } from '../../../schemas/config.js'
import { FREE_BYTES } from './messages.js'
import { createPlaces } from './places.js'

/** The reading of one heavy call. */
export interface Reading {
  /**
   * Counts bytes of the PCE's answers that are about to be passed on to the call's thread. Returns undefined if they
   * may be passed on, or otherwise a promise that resolves when they may.
   */
  readonly admit: (bytes: number) => Promise<void> | undefined
  /** Gives the place back. Must be called when the call has ended. */
  end(): void
}

/**
 * Begins the reading of a heavy call.
 *
 * @param caller the caller's identity, for the share of each caller.
 * @param mayWait returns false while others may be waiting for this call, or while it must be completed. It is then
 *   admitted without a place, because those who hold the places could be among the others.
 */
export type BeginReading = (
  caller: string,
  context: Pick<ToolContext, 'approved' | 'progress'>,
  mayWait: () => boolean,
) => Reading

/**
 * Bounds how many calls hold much of the PCE's data at the same time, so that the memory of the process is bounded:
 * half of the calls that may run at a time, and half of those of one caller. A call that has received more than
 * `FREE_BYTES` needs a place, and holds it until it ends. The others go on waiting for the PCE, where heavy calls spend
 * most of their time, and read little answers.
 */
export function createLargeReading({ max, perCaller, now }: HeavyConfig & { now: () => number }): BeginReading {
  const places = createPlaces({
    max: Math.ceil(max / 2),
    perCaller: Math.ceil(perCaller / 2),
    queue: Infinity,
    queuePerCaller: Infinity,
    waitMs: Infinity,
    now,
  })

  return (caller, { approved, progress }, mayWait) => {
    const over = new AbortController()
    let received = 0
    let hasAsked = false
    /** Resolves when the call has a place; undefined once it has one. */
    let waiting: Promise<void> | undefined
    let leave: (() => void) | undefined
    const enter = () => {
      let isQueued = false
      const queued = (ahead: number) => {
        isQueued = true
        progress({ progress: 0, message: `Waiting until others have read their data, ${ahead} ahead.` })
      }
      const entered = places.enter(caller, over.signal, queued, approved !== undefined).then((given) => {
        leave = given
        waiting = undefined
        if (over.signal.aborted) given()
      })
      // If the call ends before it has a place, nobody awaits this promise, and its rejection would be reported as
      // unhandled.
      entered.catch(() => {})
      return isQueued ? entered : undefined
    }
    return {
      admit(bytes) {
        received += bytes
        if (received <= FREE_BYTES || !mayWait()) return undefined
        if (!hasAsked) {
          hasAsked = true
          waiting = enter()
        }
        return waiting
      },
      end() {
        over.abort()
        leave?.()
      },
    }
  }
}
