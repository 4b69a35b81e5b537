/**
 * Runs `work` for every item, with at most `limit` concurrent calls. The results are in the order of the items. After
 * the first failure, the promise rejects and no further item is started, so that a failing PCE does not receive a
 * hundred more requests.
 */
export async function mapBounded<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length)
  let next = 0
  let failed = false
  const worker = async () => {
    while (next < items.length && !failed) {
      const index = next++
      try {
        results[index] = await work(items[index] as T)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return results
}

/**
 * A long calculation in steps of about a millisecond. It yields wherever it may be interrupted, and returns its result
 * at the end.
 */
export type Steps<T> = Generator<void, T, void>

/** Runs a calculation without pauses. Use it for small calculations only. */
export function finishAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/**
 * Maximum time in milliseconds for which calculations may block the event loop, which all callers of this server share.
 */
const TURN_MS = 10

/** When calculations began in the present turn of the event loop; undefined if none has begun. */
let begun: number | undefined
const waiting: (() => void)[] = []

/**
 * Runs a calculation in short turns, because with many objects on the PCE it may take seconds. Between two turns, other
 * calls, progress reports and cancellations are handled. All calculations share the time of a turn, so turns stay short
 * even if many calculations run at once or one after the other. If the signal is aborted, the promise rejects with the
 * signal's reason at the beginning of the next turn.
 */
export async function workInTurns<T>(steps: Steps<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  for (;;) {
    if (isTurnOver()) {
      await new Promise<void>((resolve) => waiting.push(resolve))
      signal.throwIfAborted()
    }
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

function isTurnOver(): boolean {
  if (begun !== undefined) return performance.now() - begun >= TURN_MS
  begun = performance.now()
  setImmediate(beginTurn)
  return false
}

/** Lets one waiting calculation continue. The next one continues only after the event loop has handled I/O. */
function beginTurn(): void {
  const next = waiting.shift()
  begun = next === undefined ? undefined : performance.now()
  if (next === undefined) return
  setImmediate(beginTurn)
  next()
}

/**
 * Works like the `map` of an array, but in short turns. It is intended for items that may each take a millisecond or
 * more.
 */
export function mapInTurns<T, R>(items: readonly T[], work: (item: T) => R, signal: AbortSignal): Promise<R[]> {
  return workInTurns(mapInSteps(items, work), signal)
}

function* mapInSteps<T, R>(items: readonly T[], work: (item: T) => R): Steps<R[]> {
  const results: R[] = []
  for (const item of items) {
    results.push(work(item))
    yield
  }
  return results
}

/** Number of items that a filter tests in one step. */
const FILTERED_PER_STEP = 50

/** Works like the `filter` of an array, but in steps. */
export function* filterInSteps<T>(items: readonly T[], isWanted: (item: T) => boolean): Steps<T[]> {
  const wanted: T[] = []
  for (const [at, item] of items.entries()) {
    if (at % FILTERED_PER_STEP === FILTERED_PER_STEP - 1) yield
    if (isWanted(item)) wanted.push(item)
  }
  return wanted
}

/** Number of items that are sorted, or merged, in one step. */
const SORTED_PER_STEP = 2000

/**
 * Works like the `toSorted` of an array, but in steps: short runs of items are sorted, and these runs are then merged
 * in pairs.
 */
export function* sortInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += SORTED_PER_STEP) {
    runs.push(items.slice(at, at + SORTED_PER_STEP).sort(compare))
    yield
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at]!, runs[at + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

function* merge<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = []
  let [at, other] = [0, 0]
  while (at < a.length || other < b.length) {
    if (merged.length % SORTED_PER_STEP === 0) yield
    const isFirst = other === b.length || (at < a.length && compare(a[at]!, b[other]!) <= 0)
    merged.push(isFirst ? a[at++]! : b[other++]!)
  }
  return merged
}
