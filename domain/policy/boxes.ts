/**
 * Sets of points in a space of many dimensions, each point having one value in each. A box restricts some dimensions to a mask of
 * values and leaves the others open. Dimensions have values that nobody names; a negative mask (a complement) holds those too.
 */
export type Box = ReadonlyMap<string, bigint>

/** Masks of every value of the dimensions that have no others; of any other dimension it is -1n. */
export type Dimensions = ReadonlyMap<string, bigint>

/** What two boxes share; null where that is nothing. */
export function intersectBoxes(a: Box, b: Box): Box | null {
  const shared = new Map(a)
  for (const [dimension, mask] of b) {
    const both = (a.get(dimension) ?? mask) & mask
    if (both === 0n) return null
    shared.set(dimension, both)
  }
  return shared
}

/** Thrown where boxes overlap in so many ways that comparing them would take too long. */
export class TooManySteps extends Error {}

/** Counts down through all the questions of one comparison. */
export interface Allowance {
  steps: number
}

/** Whether each point of a box lies in one of the others. Throws TooManySteps when the allowance is used up. */
export function isCovered(box: Box, others: readonly Box[], dimensions: Dimensions, allowance: Allowance): boolean {
  allowance.steps -= others.length
  const touching = others.filter((other) => touches(box, other))
  return leaveOut(box, 0)

  function leaveOut(rest: Box, start: number): boolean {
    for (let at = start; at < touching.length; at++) {
      allowance.steps -= 1
      if (allowance.steps < 0) throw new TooManySteps()
      const pieces = piecesOutside(rest, touching[at] as Box, dimensions)
      // What lies outside of this one in some dimension has to lie in those that follow.
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

/** What is left of a box without another, in boxes that share no point; null where they have nothing in common. */
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
