import { ToolError } from '../../../schemas/errors.js'

export interface PlacesOptions {
  /** Maximum number of calls that run at the same time. */
  max: number
  /** Maximum number of running calls of one caller. */
  perCaller: number
  /** Maximum number of calls that wait for a worker place. */
  queue: number
  /** Maximum number of waiting calls of one caller. */
  queuePerCaller: number
  /** Maximum time, in milliseconds, for which a call waits for a worker place; may be Infinity. */
  waitMs: number
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/** A limited number of worker places for expensive calls, with a queue. A running call holds one place. */
export interface Places {
  /**
   * Waits for a worker place, and resolves with a function that releases it. Rejects with `busy {retry_after_seconds}`
   * if the queue is full or no place becomes free in time, and with the signal's reason if the signal is aborted. If
   * the call has to wait, `queued` is called with the number of calls ahead of it.
   *
   * If `isPromised` is true, an approval has been used up for the call. Such a call goes before the others and is never
   * refused as `busy`.
   */
  enter(caller: string, signal: AbortSignal, queued: (ahead: number) => void, isPromised: boolean): Promise<() => void>
  readonly figures: () => { running: number; waiting: number }
}

/** Assumed duration of a call, in milliseconds, until the first call has ended. */
const FIRST_GUESS_MS = 10_000
/** The weight of the latest call in the moving average of the calls' durations. */
const LATEST = 0.2
const LONGEST_ADVICE_SECONDS = 60

interface Waiting {
  caller: string
  admit(): void
}

/**
 * Creates the worker places. Waiting calls get them in the order of arrival, except that a call is skipped as long as
 * its caller holds the maximum number of places.
 */
export function createPlaces({ max, perCaller, queue, queuePerCaller, waitMs, now }: PlacesOptions): Places {
  const runningOf = new Map<string, number>()
  let running = 0
  let meanMs = FIRST_GUESS_MS
  let waiting: Waiting[] = []

  const isFree = (caller: string) => running < max && (runningOf.get(caller) ?? 0) < perCaller

  function take(caller: string): () => void {
    const begun = now()
    running += 1
    runningOf.set(caller, (runningOf.get(caller) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      running -= 1
      const left = (runningOf.get(caller) ?? 1) - 1
      if (left === 0) runningOf.delete(caller)
      else runningOf.set(caller, left)
      meanMs += LATEST * (now() - begun - meanMs)
      admitNext()
    }
  }

  function admitNext(): void {
    // For each waiting call, it is checked again whether a place is free, because each admitted call takes one.
    for (const one of [...waiting]) if (isFree(one.caller)) one.admit()
  }

  function busy(message: string, ahead: number): ToolError {
    const seconds = Math.ceil(((ahead + 1) * meanMs) / max / 1000)
    const retryAfter = Math.min(Math.max(seconds, 1), LONGEST_ADVICE_SECONDS)
    return new ToolError('busy', message, { retry_after_seconds: retryAfter })
  }

  function refusalOf(caller: string): ToolError | null {
    const own = waiting.filter((one) => one.caller === caller).length
    if (own >= queuePerCaller) return busy(`You have ${own} calls waiting for a place already.`, waiting.length)
    if (waiting.length >= queue) return busy('Too many calls are waiting for a place.', waiting.length)
    return null
  }

  return {
    figures: () => ({ running, waiting: waiting.length }),
    enter(caller, signal, queued, isPromised) {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      if (isFree(caller)) return Promise.resolve(take(caller))
      const refusal = isPromised ? null : refusalOf(caller)
      if (refusal !== null) return Promise.reject(refusal)
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', giveUp)
          waiting = waiting.filter((one) => one !== entry)
        }
        const giveUp = () => {
          leave()
          reject(signal.reason as Error)
        }
        const tire = () => {
          const ahead = waiting.indexOf(entry)
          leave()
          reject(busy(`No place was free within ${waitMs / 1000} s.`, ahead))
        }
        const timer = isPromised || waitMs === Infinity ? undefined : setTimeout(tire, waitMs)
        const entry: Waiting = {
          caller,
          admit() {
            leave()
            resolve(take(caller))
          },
        }
        signal.addEventListener('abort', giveUp, { once: true })
        if (isPromised) waiting.unshift(entry)
        else waiting.push(entry)
        queued(waiting.indexOf(entry))
      })
    },
  }
}
