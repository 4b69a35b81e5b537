/**
 * Maximum number of milliseconds for which work on large answers may block one turn of the event loop, since all
 * callers share this loop.
 */
const TURN_MS = 8

/** Start time of the current turn of the event loop; undefined while there is no work. */
let begun: number | undefined
const queue: (() => void)[] = []

/**
 * Must be called before each step of long work. Returns undefined if the step may begin at once, or otherwise a promise
 * that resolves in a later turn of the event loop, when the step may begin. All work in progress shares the 8 ms of a
 * turn, because otherwise each of many large answers would use its own 8 ms.
 */
export function shareTurn(): Promise<void> | undefined {
  if (begun === undefined) {
    begun = performance.now()
    setImmediate(beginNext)
  } else if (queue.length > 0 || performance.now() - begun >= TURN_MS) {
    return new Promise<void>((resolve) => queue.push(resolve))
  }
  return undefined
}

/** Lets one waiting piece of work continue in each turn, so that the event loop can handle I/O between two pieces. */
function beginNext(): void {
  const next = queue.shift()
  begun = next === undefined ? undefined : performance.now()
  if (next === undefined) return
  setImmediate(beginNext)
  next()
}

/**
 * Resolves in the next turn of the event loop. Must be awaited between two steps on a large body that cannot be divided,
 * so that they do not block the same turn.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Size in bytes above which a body counts as large: large bodies are decompressed and parsed in short steps, and only a
 * few of them at the same time.
 */
export const LARGE_BODY = 1024 * 1024
/**
 * Maximum number of large bodies that this process handles at the same time, so that a dozen of them cannot exhaust its
 * memory.
 */
const PLACES = 2

let free = PLACES
const waiting: (() => void)[] = []

/** Runs work on a large body as soon as fewer than `PLACES` large bodies are being handled; first come, first served. */
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
