import { type Interval, joinIntervals } from './classify-numbers.js'

/** Returns the numbers that are both in `a` and in `b`, as sorted intervals that neither overlap nor touch. */
export function intersectIntervals(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const [left, right] = [joinIntervals(a), joinIntervals(b)]
  const found: Interval[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    const [one, other] = [left[i] as Interval, right[j] as Interval]
    const from = one.from > other.from ? one.from : other.from
    const to = one.to < other.to ? one.to : other.to
    if (from <= to) found.push({ from, to })
    if (one.to < other.to) i += 1
    else j += 1
  }
  return found
}

/** Returns the numbers of `a` that are not in `b`, as sorted intervals that neither overlap nor touch. */
export function subtractIntervals(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const taken = joinIntervals(b)
  const left: Interval[] = []
  let at = 0
  for (const { from, to } of joinIntervals(a)) {
    let start = from
    while (at < taken.length && (taken[at] as Interval).to < start) at += 1
    for (let next = at; start <= to; next += 1) {
      const hole = taken[next]
      if (hole === undefined || hole.from > to) {
        left.push({ from: start, to })
        break
      }
      if (hole.from > start) left.push({ from: start, to: hole.from - 1n })
      start = hole.to + 1n
    }
  }
  return left
}

/** Counts the numbers in intervals that do not overlap. */
export const sizeOf = (intervals: readonly Interval[]): bigint =>
  intervals.reduce((sum, { from, to }) => sum + to - from + 1n, 0n)

/** Returns whether a number is in one of the intervals, which must be sorted and must not overlap. */
export function isWithin(sorted: readonly Interval[], value: bigint): boolean {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as Interval).to < value) low = middle + 1
    else high = middle
  }
  const found = sorted[low]
  return found !== undefined && found.from <= value
}
