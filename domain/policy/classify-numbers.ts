import { type Steps, sortInSteps } from '../text/pace-work.js'
import { type Mask, createMask } from './build-mask.js'

/** An interval of whole numbers from `from` to `to`, both included. */
export interface Interval {
  from: bigint
  to: bigint
}

/**
 * A division of whole numbers into classes. Two numbers are in the same class if they belong to exactly the same sets.
 */
export interface NumberClasses {
  /** For each set, a bit mask of the classes that the set contains. */
  masks: readonly bigint[]
  /** For each class, the number of its members. */
  sizes: readonly bigint[]
}

/** Number of intervals that are processed before other work may run. */
const INTERVALS_PER_STEP = 1000

/**
 * A number at which membership in one of the sets changes: the first number of an interval, or the number after its
 * last.
 */
interface Turn {
  at: bigint
  set: number
}

/** Divides the numbers of the interval `whole` into classes, according to which of the `sets` contain them. */
export function* classifyNumbers(whole: Interval, sets: readonly (readonly Interval[])[]): Steps<NumberClasses> {
  // The numbers are sorted instead of used as keys of a map: V8 hashes a bigint by its lowest 64 bits, and these are
  // zero for most IPv6 networks.
  const unsorted: Turn[] = []
  for (const [set, intervals] of sets.entries()) {
    if (unsorted.length % INTERVALS_PER_STEP === 0 || intervals.length > INTERVALS_PER_STEP) yield
    for (const { from, to } of joinIntervals(intervals)) unsorted.push({ at: from, set }, { at: to + 1n, set })
  }
  const turns = yield* sortInSteps(unsorted, (a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  turns.push({ at: whole.to + 1n, set: -1 })
  const inside = new Set<number>()
  let signature = 0n
  const classes = new Map<string, number>()
  const sizes: bigint[] = []
  const masks = sets.map(createMask)
  let start = whole.from
  let marked = 0
  for (const { at, set } of turns) {
    if (at > start) {
      marked += inside.size + 1
      if (marked > INTERVALS_PER_STEP) yield
      marked %= INTERVALS_PER_STEP
      const id = signature.toString(16)
      const index = classes.get(id) ?? sizes.length
      if (index === sizes.length) {
        classes.set(id, index)
        sizes.push(0n)
        for (const one of inside) (masks[one] as Mask).set(index)
      }
      sizes[index] = (sizes[index] as bigint) + at - start
      start = at
    }
    if (set < 0) continue
    if (!inside.delete(set)) inside.add(set)
    signature ^= 1n << BigInt(set)
  }
  const read: bigint[] = []
  for (const mask of masks) {
    read.push(mask.read())
    yield
  }
  return { masks: read, sizes }
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
