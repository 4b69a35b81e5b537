/**
 * The age in milliseconds up to which a result is reused. Anyone can request /readyz, and every check costs a
 * synchronous write.
 */
const FRESH_MS = 1000

/**
 * Limits `check` to one run at a time and one per second; calls in between share its result. `now` returns
 * milliseconds.
 */
export function shareRecent(check: () => Promise<void>, now: () => number): () => Promise<void> {
  let last: Promise<void> | undefined
  let isRunning = false
  let checkedAt = -Infinity
  return () => {
    const age = now() - checkedAt
    if (last !== undefined && (isRunning || (age >= 0 && age < FRESH_MS))) return last
    isRunning = true
    last = check().finally(() => {
      isRunning = false
      checkedAt = now()
    })
    return last
  }
}
