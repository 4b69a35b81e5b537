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

/** Divides the numbers of `whole` into classes according to the `sets` that contain them. */
export function classifyNumbers(whole: Interval, sets: readonly (readonly Interval[])[]): NumberClasses {
  const events = new Map<bigint, number[]>([[whole.to + 1n, []]])
  const note = (where: bigint, set: number) => {
    const known = events.get(where)
    if (known === undefined) events.set(where, [set])
    else known.push(set)
  }
  for (const [set, intervals] of sets.entries()) {
    for (const { from, to } of joinIntervals(intervals)) {
      note(from, set)
      note(to + 1n, set)
    }
  }
  const inside = new Set<number>()
  let signature = 0n
  const classes = new Map<bigint, number>()
  const sizes: bigint[] = []
  const masks = sets.map(() => 0n)
  let start = whole.from
  for (const where of [...events.keys()].sort((a, b) => (a < b ? -1 : 1))) {
    if (where > start) {
      const index = classes.get(signature) ?? sizes.length
      if (index === sizes.length) {
        classes.set(signature, index)
        sizes.push(0n)
        for (const set of inside) masks[set] = (masks[set] as bigint) | (1n << BigInt(index))
      }
      sizes[index] = (sizes[index] as bigint) + where - start
      start = where
    }
    for (const set of events.get(where) as number[]) {
      if (!inside.delete(set)) inside.add(set)
      signature ^= 1n << BigInt(set)
    }
  }
  return { masks, sizes }
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
