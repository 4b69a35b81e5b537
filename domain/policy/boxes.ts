/**
 * A set of points in a space with many dimensions, in each of which a point has one value. A box restricts some
 * dimensions to certain values, given as a bit mask, and leaves the other dimensions open. Values of a dimension may
 * also have no bit; a negative mask (a complement) includes them.
 */
export type Box = ReadonlyMap<string, bigint>

/**
 * The dimensions, each with the mask of all its values. A dimension in which some values have no bit is left out, or
 * its mask is -1n.
 */
export type Dimensions = ReadonlyMap<string, bigint>

/** Returns the intersection of two boxes, or null if they have no point in common. */
export function intersectBoxes(a: Box, b: Box): Box | null {
  const shared = new Map(a)
  for (const [dimension, mask] of b) {
    const both = (a.get(dimension) ?? mask) & mask
    if (both === 0n) return null
    shared.set(dimension, both)
  }
  return shared
}

/** Thrown if boxes overlap in so many ways that comparing them would take too long. */
export class TooManySteps extends Error {}

/**
 * The number of steps that a comparison of boxes may still take. All `isCovered` calls of the comparison share it and
 * reduce it.
 */
export interface Allowance {
  steps: number
}

/**
 * Returns true if the other boxes together contain every point of this box.
 * @throws {TooManySteps} when the allowed number of steps is used up.
 */
export function isCovered(box: Box, others: readonly Box[], dimensions: Dimensions, allowance: Allowance): boolean {
  allowance.steps -= others.length
  const touching = others.filter((other) => touches(box, other))
  return leaveOut(box, 0)

  function leaveOut(rest: Box, start: number): boolean {
    for (let at = start; at < touching.length; at++) {
      allowance.steps -= 1
      if (allowance.steps < 0) throw new TooManySteps()
      const pieces = piecesOutside(rest, touching[at] as Box, dimensions)
      // The parts of `rest` outside this overlapping box must be covered by the boxes that follow in the list.
      if (pieces !== null) return pieces.every((piece) => leaveOut(piece, at + 1))
    }
    return false
  }
}

function touches(box: Box, other: Box): boolean {
  for (const [dimension, mask] of other) {
    const own = box.get(dimension)
    if (own !== undefined && (own & mask) === 0n) return false
  }
  return true
}

/**
 * Returns the parts of one box that lie outside another box, as disjoint boxes; null if the two boxes do not overlap.
 */
function piecesOutside(box: Box, other: Box, dimensions: Dimensions): Box[] | null {
  const cuts: [dimension: string, inside: bigint, outside: bigint][] = []
  for (const [dimension, mask] of other) {
    const own = box.get(dimension) ?? dimensions.get(dimension) ?? -1n
    const inside = own & mask
    if (inside === 0n) return null
    if (inside !== own) cuts.push([dimension, inside, own & ~mask])
  }
  const pieces: Box[] = []
  let rest = box
  for (const [dimension, inside, outside] of cuts) {
    pieces.push(new Map(rest).set(dimension, outside))
    rest = new Map(rest).set(dimension, inside)
  }
  return pieces
}
