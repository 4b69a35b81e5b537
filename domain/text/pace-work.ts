/**
 * Like `Promise.all`, but with at most `limit` calls in flight; the results are in the order of the items. After the
 * first failure the promise rejects and no further item is started, so that a failing PCE is not sent a hundred more
 * requests.
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
 * A long calculation in steps of about a millisecond. It yields wherever it may be interrupted, and returns its result.
 */
export type Steps<T> = Generator<void, T, void>

/** Runs a calculation without a pause, for small ones. */
export function finishAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** How long, in milliseconds, a calculation may block the event loop, which all callers share. */
const TURN_MS = 10

/**
 * Runs a calculation in short turns, because on a large estate it may take seconds: between two turns, other calls,
 * progress reports and cancellation get through. When the signal is aborted, the promise rejects with the signal's
 * reason at the end of the current turn.
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
