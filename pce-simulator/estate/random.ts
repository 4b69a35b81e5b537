/**
 * A small seeded random number generator. All random choices for an estate use it, so that a seed determines the
 * estate.
 */
export interface Random {
  /** Returns the next random number x, with 0 <= x < 1. */
  next(): number
  /** Returns a random integer between `from` and `to`, both included. */
  integer(from: number, to: number): number
  chance(probability: number): boolean
  /** Picks a random item of the list. Throws RangeError if the list is empty. */
  pick<T>(items: readonly T[]): T
  /** Returns a string of `digits` random lowercase hexadecimal digits. */
  hex(digits: number): string
  /** Returns a random string in the form of a version 4 UUID. */
  uuid(): string
}

/** Creates a mulberry32 generator. Its state of 32 bits is sufficient for an estate. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const integer = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  const hex = (digits: number) => {
    let text = ''
    while (text.length < digits) text += integer(0, 0xffff).toString(16).padStart(4, '0')
    return text.slice(0, digits)
  }
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new RangeError('nothing to pick from')
      return items[Math.floor(next() * items.length)]!
    },
    hex,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'[integer(0, 3)]}${hex(3)}-${hex(12)}`,
  }
}

/**
 * Creates a picker of random indexes, each with a probability in proportion to its weight. After `remove(index)`, that
 * index is never picked again.
 */
export function createWeightedDraw(weights: readonly number[]): {
  draw(random: Random): number | null
  remove(index: number): void
} {
  const left = [...weights]
  let sums: number[] | null = null
  return {
    draw: (random) => {
      let total = 0
      sums ??= left.map((weight) => (total += weight))
      const target = random.next() * (sums.at(-1) ?? 0)
      let [low, high] = [0, sums.length - 1]
      while (low < high) {
        const middle = (low + high) >> 1
        if (sums[middle]! > target) high = middle
        else low = middle + 1
      }
      return (left[low] ?? 0) > 0 ? low : null
    },
    remove: (index) => {
      left[index] = 0
      sums = null
    },
  }
}
