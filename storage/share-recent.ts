/**
 * The age in milliseconds up to which a result is reused. Anyone can request /readyz, and every check costs a
 * synchronous write.
 */
const FRESH_MS = 1000
/**
 * The age in milliseconds up to which a failure is reused. It is shorter, so that the end of an outage is noticed soon.
 */
const FAILED_MS = 250

/**
 * Limits `check` to one run at a time, and to one run per second, or four per second while it fails. Calls in between
 * share its result. `now` returns milliseconds.
 */
export function shareRecent(check: () => Promise<void>, now: () => number): () => Promise<void> {
  let last: Promise<void> | undefined
  let isRunning = false
  let checkedAt = -Infinity
  let freshMs = FRESH_MS
  const end = (ms: number) => {
    isRunning = false
    checkedAt = now()
    freshMs = ms
  }
  return () => {
    const age = now() - checkedAt
    if (last !== undefined && (isRunning || (age >= 0 && age < freshMs))) return last
    isRunning = true
    last = check().then(
      () => end(FRESH_MS),
      (error: unknown) => {
        end(FAILED_MS)
        throw error
      },
    )
    return last
  }
}
