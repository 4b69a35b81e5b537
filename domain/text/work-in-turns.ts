/** A long calculation cut into steps of a millisecond or so: it yields wherever it may be held up, and returns its result. */
export type Steps<T> = Generator<void, T, void>

/** How long, in milliseconds, a calculation keeps the process to itself. All callers of a server share one event loop. */
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
