/**
 * Whether widening, narrowing and neutral are true, and whether an effect is told wherever there is one: random changes, described by
 * the tool and held against what the simulator makes of every connection. policy-effects.long.ts does the same for many more.
 */
import t from 'tap'
import { measureEffects, startWorld } from './random-changes.js'

t.test('random changes', async (t) => {
  const world = await startWorld(t)
  const { contradiction, overstated, undecided, changes } = await measureEffects(t, world, { changes: 24, seed: 1 })
  t.equal(changes, 24)
  t.equal(contradiction, 0, 'nothing is said that is not so')
  t.equal(overstated, 0, 'no effect is told where there is none')
  t.equal(undecided, 0, 'an effect is told wherever there is one, whatever other rules say')
})
