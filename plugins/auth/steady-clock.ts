/**
 * Milliseconds since the clock was made, by a clock that may be set: what it is set back does not count, so that a
 * correction of the time neither makes anything younger nor stops what happens at intervals.
 */
export function steadyClock(now: () => number): () => number {
  let last = now()
  let elapsed = 0
  return () => {
    const at = now()
    elapsed += Math.max(0, at - last)
    last = at
    return elapsed
  }
}
