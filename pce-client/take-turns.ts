/** Milliseconds for which the event loop, which all callers share, may be kept. */
const TURN_MS = 8

/** Ends a turn once it has lasted long enough: to be awaited between the steps of work that is long. */
export function createTurns(): () => Promise<void> | undefined {
  let started = performance.now()
  return () => {
    if (performance.now() - started < TURN_MS) return undefined
    return new Promise<void>((resolve) => {
      setImmediate(() => {
        started = performance.now()
        resolve()
      })
    })
  }
}

/** Bodies above this many bytes are large: they are unpacked, counted and parsed in turns, and only a few at once. */
export const LARGE_BODY = 1024 * 1024
/** Large bodies that are worked on at once in this process, so that a dozen of them together do not exhaust its memory. */
const PLACES = 2

let free = PLACES
const waiting: (() => void)[] = []

/** Does the work on a large body as soon as there is a place for it; first come, first served. */
export async function inLargePlace<T>(work: () => Promise<T>): Promise<T> {
  if (free > 0) free -= 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
}
