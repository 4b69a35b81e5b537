/** Number of places for values in one block of a store; a power of two. */
const PLACES = 4096

/**
 * A store made of equally long blocks (such as typed arrays) that together hold values for the places 0, 1, 2 and so
 * on.
 */
interface GrowingBlocks<T> {
  /** Returns true if there is a block for a place. */
  has(place: number): boolean
  /** Returns the block that contains a place. An earlier call of `upTo` must have made room for the place. */
  of(place: number): T
  /** Makes room for all places up to and including this place, and returns the block that contains it. */
  upTo(place: number): T
}

/**
 * Creates a store that grows by one block of 4,096 places at a time. Growing copies nothing and wastes less than one
 * block, whereas an array that doubles takes up to three times the needed memory while it grows.
 *
 * @param create creates a block with the given number of places.
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
