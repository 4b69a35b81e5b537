/** Distinct tuples of numbers, each known by its position in order of appearance. */
export interface TupleTable {
  /** The tuple's position; a tuple never seen before gets the next one. `tuple` is copied. */
  slot(tuple: Int32Array): number
  /** One number of a tuple. */
  at(slot: number, column: number): number
  readonly size: number
}

/** `width`: numbers in a tuple. Open addressing over typed arrays: 200,000 tuples of five take 6 MB and no objects. */
export function createTupleTable(width: number): TupleTable {
  let size = 0
  let keys = new Int32Array(256 * width)
  // Position + 1 of the tuple, 0 for a free bucket; the length is a power of two, never more than half full.
  let buckets = new Int32Array(1024)

  // Plain loops: for so few numbers the methods of typed arrays, and iterating over one, cost more than the work itself.
  const equals = (slot: number, tuple: Int32Array) => {
    const start = slot * width
    for (let column = 0; column < width; column++) if (keys[start + column] !== tuple[column]) return false
    return true
  }
  const grow = () => {
    const longer = new Int32Array(keys.length * 2)
    longer.set(keys)
    keys = longer
  }
  const rehash = () => {
    buckets = new Int32Array(buckets.length * 4)
    const mask = buckets.length - 1
    for (let slot = 0; slot < size; slot++) {
      let bucket = hash(keys, slot * width, width) & mask
      while (buckets[bucket] !== 0) bucket = (bucket + 1) & mask
      buckets[bucket] = slot + 1
    }
  }

  return {
    slot(tuple) {
      const mask = buckets.length - 1
      let bucket = hash(tuple, 0, width) & mask
      for (;;) {
        const entry = buckets[bucket] as number
        if (entry === 0) break
        if (equals(entry - 1, tuple)) return entry - 1
        bucket = (bucket + 1) & mask
      }
      if ((size + 1) * width > keys.length) grow()
      for (let column = 0; column < width; column++) keys[size * width + column] = tuple[column] as number
      buckets[bucket] = ++size
      if (size * 2 > buckets.length) rehash()
      return size - 1
    },
    at: (slot, column) => keys[slot * width + column] as number,
    get size() {
      return size
    },
  }
}

/** Of the numbers from `start` on. Mixes every bit of every number into the low bits, where the bucket is taken from. */
function hash(numbers: Int32Array, start: number, width: number): number {
  let mixed = 0
  for (let at = start; at < start + width; at++) {
    mixed = Math.imul(mixed ^ (numbers[at] as number), 0x9e3779b1)
    mixed ^= mixed >>> 15
  }
  mixed = Math.imul(mixed, 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) >>> 0
}
