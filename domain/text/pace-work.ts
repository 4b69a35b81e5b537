/**
 * `Promise.all` over a list with at most `limit` calls in flight; results in the order of the items. The first failure
 * rejects and no further item is started, so that a failing PCE is not asked a hundred times more.
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

/** A long calculation in steps of about a millisecond: it yields wherever it may be interrupted, and returns its result. */
export type Steps<T> = Generator<void, T, void>

/** How long, in milliseconds, a calculation may keep the event loop, which all callers share. */
const TURN_MS = 10

/**
 * Runs a calculation in turns, so that other calls, progress and cancellation get through while it runs: on a big estate it takes
 * seconds. Rejects with the signal's reason at the end of the turn in which that is aborted.
 */
export async function workInTurns<T>(steps: Steps<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let started = performance.now()
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (performance.now() - started < TURN_MS) continue
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
    started = performance.now()
  }
}
