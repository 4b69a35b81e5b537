/** Replicas restarted one after the other with calls running: behind nginx nobody notices. */
import t from 'tap'
import { underLoad } from './load.js'
import { startReplicas } from './replicas.js'
import { stateEngine } from './state-engine.js'

const ROUNDS = 2

t.test('a rolling restart loses no call and refuses none', async (t) => {
  const replicas = await startReplicas(t, { postgres: await stateEngine(t) })
  const codes: (number | null)[] = []
  const tally = await underLoad(
    t,
    replicas,
    async () => {
      for (let round = 0; round < ROUNDS; round++) codes.push(...(await replicas.roll()))
    },
    { mayLose: false, direct: false },
  )
  t.same(
    codes,
    Array.from({ length: ROUNDS * replicas.replicas.length }, () => 0),
  )
  t.same(tally.refused, {})
  console.error(`rolled: ${JSON.stringify(tally)}`)
})
