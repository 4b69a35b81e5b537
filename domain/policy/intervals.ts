import { type Interval, joinIntervals } from './classify-numbers.js'

/** The numbers that are in one of `a` and in one of `b`, in intervals of which no two touch, in order. */
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

/** The numbers of `a` that are in none of `b`, in the same form. */
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

/** How many numbers there are in intervals of which no two overlap. */
export const sizeOf = (intervals: readonly Interval[]): bigint =>
  intervals.reduce((sum, { from, to }) => sum + to - from + 1n, 0n)
