/** Milliseconds for which the event loop, which all callers share, may be kept. */
const TURN_MS = 8

/** When the turn of the event loop that is under way was begun; undefined while nobody works. */
let begun: number | undefined
const queue: (() => void)[] = []

/**
 * To be awaited before each step of work that is long: goes on at once while this turn of the event loop is short, and otherwise in a
 * later one. Whoever works at the same time shares the turns: each of many large answers would take its own part of every one.
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

/** One of those who wait goes on in each turn; whatever arrives is looked at between two of them. */
function beginNext(): void {
  const next = queue.shift()
  begun = next === undefined ? undefined : performance.now()
  if (next === undefined) return
  setImmediate(beginNext)
  next()
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
