import t from 'tap'
import { workInTurns, type Steps } from '../../domain/text/pace-work.js'

const STEP_MS = 1
/** Nine times as long as a turn, all together. */
const SHORT = 30
const STEPS_OF_EACH = 3
/** A turn of ten steps, and what is around it. */
const MOST_STEPS = 25

/** Runs calculations, and returns the largest number of steps in one turn of the event loop. */
async function mostStepsInOneTurn(run: (calculate: () => Promise<void>) => Promise<void>): Promise<number> {
  let [most, steps, isDone] = [0, 0, false]
  const endTurn = () => {
    steps = 0
    if (!isDone) setImmediate(endTurn)
  }
  setImmediate(endTurn)
  const { signal } = new AbortController()
  function* calculation(): Steps<void> {
    for (let step = 0; step < STEPS_OF_EACH; step += 1) {
      const began = performance.now()
      while (performance.now() - began < STEP_MS);
      most = Math.max(most, (steps += 1))
      yield
    }
  }
  await run(() => workInTurns(calculation(), signal))
  isDone = true
  return most
}

t.test('many short calculations in a row do not make one long turn', async (t) => {
  const most = await mostStepsInOneTurn(async (calculate) => {
    for (let at = 0; at < SHORT; at += 1) await calculate()
  })
  t.ok(most <= MOST_STEPS, `${most} steps`)
})

t.test('nor do many at once', async (t) => {
  const most = await mostStepsInOneTurn(async (calculate) => {
    await Promise.all(Array.from({ length: SHORT }, calculate))
  })
  t.ok(most <= MOST_STEPS, `${most} steps`)
})
