import { PceError } from './errors.js'
import type { Timers } from './types.js'

const WINDOW_MS = 60_000

/** Lets requests start one after the other, and not more than a number of them in any minute. */
export interface Pacer {
  /**
   * Resolves when a request may start; undefined when it may at once. A turn that was granted counts as used.
   *
   * @param latestStart the time after which the request is not wanted any more.
   * @throws {PceError} `deadline` at once when its turn comes only after `latestStart`.
   * @throws what `signal` was aborted with; its place in the queue is free then.
   */
  takeTurn(latestStart: number, signal: () => AbortSignal): Promise<void> | undefined
}

/**
 * At most `limit` starts in any 60 seconds (the PCE allows 500: P48), first come, first served. Written here because the published
 * limiters (p-throttle, limiter) run on the system's clock and cannot give up one waiting call and free its place.
 */
export function createPacer(limit: number, timers: Timers): Pacer {
  /** When the last requests were started, oldest first: only those of the last minute, so never more than `limit`. */
  const starts: number[] = []
  const queue: { grant: () => void }[] = []
  let isServing = false
  /** Ends the wait for a turn that nobody wants any more. */
  let wait: AbortController | undefined

  function forgetOld(now: number): void {
    // A system clock that was set back would otherwise hold everyone for as long.
    if ((starts.at(-1) ?? now) > now) starts.length = 0
    while (starts.length > 0 && starts[0]! + WINDOW_MS <= now) starts.shift()
  }

  /** When the request behind `ahead` others may start. */
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
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the signal's own reason, whatever it is
          reject(ending.reason)
        }
        ending.addEventListener('abort', leave, { once: true })
        queue.push(waiting)
        if (!isServing) void serve()
      })
    },
  }
}
