/**
 * Size in bytes at which the collected pieces of a body become a parcel, since a message to another thread costs as
 * much as several kilobytes of data.
 */
const PARCEL_BYTES = 256 * 1024

/** Collects the pieces of a body into parcels. Each parcel has a buffer of its own, so that it can be transferred. */
export interface ParcelCollector {
  /** Adds a piece. Returns a parcel if there is enough for one. */
  take(piece: Uint8Array): Buffer<ArrayBuffer> | undefined
  /** Returns what is left as the last parcel; undefined if nothing is left. */
  end(): Buffer<ArrayBuffer> | undefined
}

export function collectParcel(): ParcelCollector {
  let pieces: Uint8Array[] = []
  let size = 0
  const end = () => {
    if (size === 0) return undefined
    const parcel = Buffer.from(new ArrayBuffer(size))
    let at = 0
    for (const piece of pieces) {
      parcel.set(piece, at)
      at += piece.length
    }
    pieces = []
    size = 0
    return parcel
  }
  return {
    take(piece) {
      pieces.push(piece)
      size += piece.length
      return size >= PARCEL_BYTES ? end() : undefined
    },
    end,
  }
}
