/** The sets that effects are computed with, against counting every point. */
import fc from 'fast-check'
import t from 'tap'
import { TooManySteps, isCovered, type Box } from '../../domain/policy/boxes.js'
import { classifyNumbers } from '../../domain/policy/classify-numbers.js'
import { finishAtOnce } from '../../domain/text/pace-work.js'

const DIMENSIONS = ['x', 'y', 'z']
/** Three values and whatever nobody names; a box without a dimension holds all of it. */
const mask = fc
  .tuple(fc.integer({ min: 1, max: 7 }), fc.boolean())
  .map(([bits, not]) => (not ? ~BigInt(bits) : BigInt(bits)))
const box = fc
  .tuple(...DIMENSIONS.map((name) => fc.option(mask).map((own) => [name, own] as const)))
  .map((dimensions): Box => new Map(dimensions.flatMap(([name, own]) => (own === null ? [] : [[name, own] as const]))))
const VALUES = [1n, 2n, 4n, 8n]
const POINTS = VALUES.flatMap((x) => VALUES.flatMap((y) => VALUES.map((z) => [x, y, z])))
const holds = (one: Box, point: readonly bigint[]) =>
  DIMENSIONS.every((name, at) => ((one.get(name) ?? -1n) & point[at]!) !== 0n)

t.test('a box is covered where each of its points is', async (t) => {
  let covered = 0
  fc.assert(
    fc.property(box, fc.array(box, { maxLength: 6 }), (one, others) => {
      const truth = POINTS.every((point) => !holds(one, point) || others.some((other) => holds(other, point)))
      if (truth) covered += 1
      return isCovered(one, others, new Map(), { steps: 10_000 }) === truth
    }),
    { numRuns: 1000, seed: 90 },
  )
  t.ok(covered > 50, `${covered} were`)
  // Where a dimension has no other values, two halves of it are all of it.
  const halves = [new Map([['x', 1n]]), new Map([['x', 2n]])]
  t.equal(isCovered(new Map(), halves, new Map([['x', 3n]]), { steps: 9 }), true)
  t.equal(isCovered(new Map(), halves, new Map(), { steps: 9 }), false)
  t.throws(() => isCovered(new Map(), halves, new Map(), { steps: 2 }), new TooManySteps())
})

t.test('numbers are in the same class where they are in the same sets', async () => {
  const interval = fc.tuple(fc.nat(15), fc.nat(15)).map(([from, to]) => ({ from: BigInt(from), to: BigInt(to) }))
  fc.assert(
    fc.property(fc.array(fc.array(interval, { maxLength: 3 }), { maxLength: 4 }), (sets) => {
      const { masks, sizes } = finishAtOnce(classifyNumbers({ from: 0n, to: 15n }, sets))
      const signatures = Array.from({ length: 16 }, (_, n) =>
        sets.map((set) => set.some(({ from, to }) => from <= n && n <= to)).join(),
      )
      const counts = new Map<string, number>()
      for (const signature of signatures) counts.set(signature, (counts.get(signature) ?? 0) + 1)
      const told = sizes.map((size, at) => `${masks.map((own) => ((own >> BigInt(at)) & 1n) === 1n).join()} ${size}`)
      return JSON.stringify(told.toSorted()) === JSON.stringify([...counts].map((pair) => pair.join(' ')).toSorted())
    }),
    { numRuns: 500, seed: 90 },
  )
})

t.test('more intervals than one step sorts are classes like few', async (t) => {
  // Three sets of 3,000 single numbers in other orders: the second has every number of the first, the third every other.
  const numbers = Array.from({ length: 3000 }, (_, n) => BigInt(n * 2))
  const sets = [numbers, numbers.toReversed(), numbers.filter((_, n) => n % 2 === 0)].map((own) =>
    own.map((n) => ({ from: n, to: n })),
  )
  const { masks, sizes } = finishAtOnce(classifyNumbers({ from: 0n, to: 5999n }, sets))
  t.same(
    [masks, sizes],
    [
      [5n, 5n, 1n],
      [1500n, 3000n, 1500n],
    ],
  )
})
