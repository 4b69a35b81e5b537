import { setTimeout as wait } from 'node:timers/promises'

const PATIENCE_MS = 100_000
/** Turns of the event loop without a pause: what has been set going in this process needs no more. */
const TURNS = 1000

/**
 * Waits for what a test has made happen, looking at every turn of the event loop, and later less often: whoever spins keeps
 * the processor from what it waits for.
 *
 * @throws {Error} when it has not happened within 100 s.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  for (let turn = 0; !(await condition()); turn++) {
    if (Date.now() > end) throw new Error('it never happened')
    await (turn < TURNS ? new Promise((resolve) => setImmediate(resolve)) : wait(5))
  }
}
