/**
 * Maximum age, in milliseconds, at which the result of a passed check is reused. Results are reused because anyone can
 * request /readyz, and every check costs a synchronous write.
 */
const FRESH_MS = 1000
/**
 * Maximum age, in milliseconds, at which the result of a failed check is reused. It is shorter than that of a passed
 * check, so that the end of an outage is noticed soon.
 */
const FAILED_MS = 250

/**
 * Creates a version of `check` that runs at most once at a time: at most once per second, or four times per second
 * while it fails. Calls in between get the last result. `now` returns milliseconds.
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
