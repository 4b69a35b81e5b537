import { PceError } from './errors.js'
import type { Timers } from './types.js'

const WINDOW_MS = 60_000

/** Lets requests start in order, and limits how many may start within any minute. */
export interface Pacer {
  /**
   * Waits until a request may start; returns undefined if it may start at once. A start that has been granted counts
   * towards the limit.
   *
   * @param latestStart the time after which it would be too late to start the request.
   * @throws {PceError} `deadline` immediately, if the start would come after `latestStart`.
   * @throws the reason of `signal` if it aborts; the request then loses its place in the queue.
   */
  takeTurn(latestStart: number, signal: () => AbortSignal): Promise<void> | undefined
}

/**
 * Creates a pacer that allows at most `limit` starts in any 60 seconds (the PCE allows 500: P48), first come, first
 * served. The published limiters (p-throttle, limiter) are not used, because they rely on the system clock and cannot
 * cancel a single waiting call and free its place.
 */
export function createPacer(limit: number, timers: Timers): Pacer {
  /** Start times of the last minute's requests, oldest first; never more than `limit` entries. */
  const starts: number[] = []
  const queue: { grant: () => void }[] = []
  let isServing = false
  /** Aborts the wait for the next possible start once all waiting requests have been cancelled. */
  let wait: AbortController | undefined

  function forgetOld(now: number): void {
    // If the system clock was set back, the recorded times lie in the future and would delay every request by as much
    // as the clock was set back.
    if ((starts.at(-1) ?? now) > now) starts.length = 0
    while (starts.length > 0 && starts[0]! + WINDOW_MS <= now) starts.shift()
  }

  /** Returns the time at which a request may start if `ahead` other requests are before it in the queue. */
  function startBehind(ahead: number, now: number): number {
    const free = limit - starts.length
    if (ahead < free) return now
    const later = ahead - free
    const slot = starts[later % limit] ?? now
    return slot + WINDOW_MS * (1 + Math.floor(later / limit))
  }

  async function serve(): Promise<void> {
    isServing = true
    while (queue.length > 0) {
      const now = timers.now()
      forgetOld(now)
      const ms = startBehind(0, now) - now
      if (ms > 0) {
        wait = new AbortController()
        await timers.sleep(ms, wait.signal).catch(() => undefined)
      } else {
        starts.push(now)
        queue.shift()?.grant()
      }
    }
    isServing = false
  }

  return {
    takeTurn(latestStart, signal) {
      const now = timers.now()
      forgetOld(now)
      const start = startBehind(queue.length, now)
      if (queue.length === 0 && start <= now) {
        starts.push(now)
        return undefined
      }
      if (start > latestStart) {
        const seconds = Math.ceil((start - now) / 1000)
        throw new PceError(
          'deadline',
          `its turn under maxRequestsPerMinute (${limit}) comes in ${seconds} s, after the deadline of this call`,
        )
      }
      return new Promise((resolve, reject) => {
        const ending = signal()
        ending.throwIfAborted()
        const waiting = {
          grant: () => {
            ending.removeEventListener('abort', leave)
            resolve()
          },
        }
        const leave = () => {
          queue.splice(queue.indexOf(waiting), 1)
          if (queue.length === 0) wait?.abort()
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason may be any value
          reject(ending.reason)
        }
        ending.addEventListener('abort', leave, { once: true })
        queue.push(waiting)
        if (!isServing) void serve()
      })
    },
  }
}
