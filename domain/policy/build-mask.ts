const BITS_PER_BYTE = 8
const FIRST_BYTES = 8

/** A bit mask under construction, which may have many bits. */
export interface Mask {
  /** Sets the bit with this index. */
  set(index: number): void
  read(): bigint
}

/**
 * Creates an empty mask. Setting a bit in a bigint would copy all its bits; setting a bit in this mask takes the same
 * time for any index.
 */
export function createMask(): Mask {
  let bytes = new Uint8Array(FIRST_BYTES)
  let used = 0
  return {
    set(index) {
      const at = Math.floor(index / BITS_PER_BYTE)
      if (at >= bytes.length) {
        const longer = new Uint8Array(2 ** Math.ceil(Math.log2(at + 1)))
        longer.set(bytes)
        bytes = longer
      }
      bytes[at]! |= 1 << (index % BITS_PER_BYTE)
      used = Math.max(used, at + 1)
    },
    read: () => (used === 0 ? 0n : BigInt(`0x${Buffer.from(bytes.subarray(0, used)).reverse().toString('hex')}`)),
  }
}
