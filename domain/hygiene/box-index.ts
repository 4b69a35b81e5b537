import type { Box } from '../policy/boxes.js'

/** A box (a set of connections, described by one mask per dimension) and the index of the rule to which it belongs. */
export interface OwnedBox {
  box: Box
  owner: number
}

/**
 * The dimensions that are indexed. Most boxes leave the other dimensions unrestricted, so indexing those would hardly
 * narrow the search.
 */
const SELECTIVE = /^(?:(?:src|dst)\.(?:label .*|id|ip|fqdn)|port)$/u
/**
 * Maximum number of values that an indexed box may have in a dimension. A box with more values is indexed as if it were
 * unrestricted there.
 */
const MOST_VALUES = 64

interface Postings {
  byValue: Map<bigint, OwnedBox[]>
  open: OwnedBox[]
}

/**
 * An index that finds the boxes that may overlap a given box. Most rules have no connection in common, so the index
 * saves most comparisons.
 */
export interface BoxIndex {
  /** Returns all boxes that overlap the given box, and possibly some that do not. */
  near(box: Box): readonly OwnedBox[]
}

export function indexBoxes(boxes: readonly OwnedBox[]): BoxIndex {
  const dimensions = new Set(boxes.flatMap(({ box }) => [...box.keys()].filter((name) => SELECTIVE.test(name))))
  const postings = new Map<string, Postings>()
  for (const dimension of dimensions) {
    const own: Postings = { byValue: new Map(), open: [] }
    postings.set(dimension, own)
    for (const one of boxes) {
      const values = valuesOf(one.box.get(dimension))
      if (values === null) own.open.push(one)
      for (const value of values ?? []) {
        const known = own.byValue.get(value)
        if (known === undefined) own.byValue.set(value, [one])
        else known.push(one)
      }
    }
  }
  return {
    near(box) {
      let best = { size: boxes.length, find: () => boxes }
      for (const [dimension, { byValue, open }] of postings) {
        const values = valuesOf(box.get(dimension))
        if (values === null) continue
        const lists = [open, ...values.flatMap((value) => [byValue.get(value) ?? []])]
        const size = lists.reduce((sum, list) => sum + list.length, 0)
        if (size < best.size) best = { size, find: () => (lists.length === 1 ? open : [...new Set(lists.flat())]) }
      }
      return best.find()
    },
  }
}

/**
 * Returns each value of a mask as a mask with a single bit. Returns null if the mask restricts nothing or has too many
 * values.
 */
function valuesOf(mask: bigint | undefined): bigint[] | null {
  if (mask === undefined || mask < 0n) return null
  const values: bigint[] = []
  for (let rest = mask; rest > 0n;) {
    const lowest = rest & -rest
    if (values.length === MOST_VALUES) return null
    values.push(lowest)
    rest ^= lowest
  }
  return values
}
