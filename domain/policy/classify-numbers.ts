import type { Steps } from '../text/pace-work.js'
import { maskOfBits } from './rule-boxes/bits.js'

/** The whole numbers from `from` to `to`, both included. */
export interface Interval {
  from: bigint
  to: bigint
}

/** Whole numbers divided into classes. The numbers of one class are members of exactly the same sets. */
export interface NumberClasses {
  /** For each set, a bit mask of the classes that it contains. */
  masks: readonly bigint[]
  /** For each class, the number of its members. */
  sizes: readonly bigint[]
}

/** Number of intervals that are read in one step. */
const INTERVALS_PER_STEP = 1000

/** Divides the numbers of `whole` into classes according to the `sets` that contain them. */
export function* classifyNumbers(whole: Interval, sets: readonly (readonly Interval[])[]): Steps<NumberClasses> {
  const events = new Map<bigint, number[]>([[whole.to + 1n, []]])
  const note = (where: bigint, set: number) => {
    const known = events.get(where)
    if (known === undefined) events.set(where, [set])
    else known.push(set)
  }
  let read = 0
  for (const [set, intervals] of sets.entries()) {
    read += intervals.length + 1
    if (read > INTERVALS_PER_STEP) yield
    read %= INTERVALS_PER_STEP
    for (const { from, to } of joinIntervals(intervals)) {
      note(from, set)
      note(to + 1n, set)
    }
  }
  const inside = new Set<number>()
  let signature = 0n
  const classes = new Map<bigint, number>()
  const sizes: bigint[] = []
  const bits: number[][] = sets.map(() => [])
  let start = whole.from
  for (const [at, where] of [...events.keys()].sort((a, b) => (a < b ? -1 : 1)).entries()) {
    if (at % INTERVALS_PER_STEP === 0) yield
    if (where > start) {
      const index = classes.get(signature) ?? sizes.length
      if (index === sizes.length) {
        classes.set(signature, index)
        sizes.push(0n)
        for (const set of inside) (bits[set] as number[]).push(index)
      }
      sizes[index] = (sizes[index] as bigint) + where - start
      start = where
    }
    for (const set of events.get(where) as number[]) {
      if (!inside.delete(set)) inside.add(set)
      signature ^= 1n << BigInt(set)
    }
  }
  return { masks: bits.map(maskOfBits), sizes }
}

/** Merges intervals that overlap or touch, and sorts them. */
export function joinIntervals(intervals: readonly Interval[]): Interval[] {
  const joined: Interval[] = []
  const sorted = intervals.filter(({ from, to }) => from <= to).sort((a, b) => (a.from < b.from ? -1 : 1))
  for (const { from, to } of sorted) {
    const last = joined.at(-1)
    if (last === undefined || from > last.to + 1n) joined.push({ from, to })
    else if (to > last.to) last.to = to
  }
  return joined
}
