/** The effects of many random changes: what is told of them and what is true (see random-changes.ts), counted and bounded. */
import t from 'tap'
import { measureEffects, startWorld } from './random-changes.js'

/** Of a hundred changes. */
const MOST = 2

t.test('random changes', async (t) => {
  const world = await startWorld(t)
  const counts = await measureEffects(t, world, { changes: 120, seed: 1 })
  t.equal(counts.changes, 120)
  t.equal(counts.contradiction, 0, 'contradictions')
  t.ok(counts.overstated <= (MOST * 120) / 100, `${counts.overstated} overstated`)
  t.ok(counts.undecided <= (MOST * 120) / 100, `${counts.undecided} undecided although plain`)
  for (const truth of ['widening', 'narrowing', 'neutral', 'open'])
    t.ok((counts.truths[truth] ?? 0) >= 5, `${truth}: ${counts.truths[truth]} times`)
})
