/**
 * The bit that means "no value" in every dimension whose values have no order: no label of the key, no known process,
 * no special condition.
 */
export const NONE = 1n

/** Returns the bit of a value. The same value of the same dimension always has the same bit. */
export type Bit = (dimension: string, value: string) => bigint

/** Creates a function that numbers the values of each dimension in the order in which it meets them. */
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

const BITS_PER_BYTE = 8

/** Returns the mask in which the bits with these indices are set. It takes time for the longest mask only once. */
export function maskOfBits(indices: readonly number[]): bigint {
  const last = indices.reduce((most, index) => Math.max(most, index), -1)
  if (last < 0) return 0n
  const bytes = new Uint8Array(Math.floor(last / BITS_PER_BYTE) + 1)
  for (const index of indices)
    bytes[bytes.length - 1 - Math.floor(index / BITS_PER_BYTE)]! |= 1 << (index % BITS_PER_BYTE)
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}
