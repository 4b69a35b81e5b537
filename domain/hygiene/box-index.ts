import type { Box } from '../policy/boxes.js'

/** A box with the number of the rule that it is of. */
export interface OwnedBox {
  box: Box
  owner: number
}

/** Dimensions that select: what most boxes leave open tells none of them apart. */
const SELECTIVE = /^(?:(?:src|dst)\.(?:label .*|id|ip|fqdn)|port)$/u
/** A box with more values in a dimension than this counts as open there. */
const MOST_VALUES = 64

interface Postings {
  byValue: Map<bigint, OwnedBox[]>
  open: OwnedBox[]
}

/** Boxes, to be found by what they share with another one: most rules of an estate have nothing to do with each other. */
export interface BoxIndex {
  /** Every box that may share a point with this one; others may be among them. */
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

/** The values of a mask, each as its bit; null for one that is open, or has many. */
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
