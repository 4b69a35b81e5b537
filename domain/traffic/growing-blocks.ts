/** Number of places in a block: a power of two. */
const PLACES = 4096

/** Typed arrays of equal length that together hold the numbers of places 0, 1, 2 and so on. */
interface GrowingBlocks<T> {
  /** Returns true if there is a block for a place. */
  has(place: number): boolean
  /** Returns the block of a place that `upTo` has made room for. */
  of(place: number): T
  /** Makes room for all places up to this one, and returns its block. */
  upTo(place: number): T
}

/**
 * Creates storage that grows by a block of 4,096 places at a time. Nothing is copied and nothing is left over, so a
 * million rows take what their numbers need. An array that doubles holds up to three times as much while it grows.
 * @param create makes a block for that many places.
 */
export function growingBlocks<T>(create: (places: number) => T): GrowingBlocks<T> {
  const blocks: T[] = []
  const has = (place: number) => place < blocks.length * PLACES
  const of = (place: number) => blocks[(place / PLACES) | 0] as T
  return {
    has,
    of,
    upTo(place) {
      while (!has(place)) blocks.push(create(PLACES))
      return of(place)
    },
  }
}

/** Returns the position of a place within its block. */
export const placeInBlock = (place: number): number => place & (PLACES - 1)
