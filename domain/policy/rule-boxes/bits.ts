/**
 * The bit for "no value" in every dimension with unordered values, such as no label with the key or no known process.
 */
export const NONE = 1n

/** Returns the bit of a value. For the same value and dimension, it is always the same bit. */
export type Bit = (dimension: string, value: string) => bigint

/** Creates a function that numbers the values of each dimension in the order in which they are first seen. */
export function createBits(): Bit {
  const bits = new Map<string, Map<string, bigint>>()
  return (dimension, value) => {
    const known = bits.get(dimension) ?? new Map<string, bigint>()
    bits.set(dimension, known)
    const found = known.get(value) ?? 2n ** BigInt(known.size + 1)
    known.set(value, found)
    return found
  }
}
