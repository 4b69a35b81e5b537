/** Replicas that are killed (SIGKILL) at a step of a call. */
import type { Replicas } from './replicas.js'

/** On a file there is no proxy to stop a call at a statement: it is killed anywhere in the time that calls take. */
const USUAL_MS = 300

/** Where a call is when its replica dies: at its n-th statement, before PostgreSQL has it or after it has answered; or at its n-th PCE request. */
export type Step = { at: 'statement'; n: number; delivered: boolean } | { at: 'pce'; n: number }

/** Before and after each of the first statements. */
export const statements = (count: number): Step[] =>
  Array.from({ length: count }, (_, at) => at + 1).flatMap((n) =>
    [false, true].map((delivered) => ({ at: 'statement', n, delivered }) as const),
  )

export const STEPS: readonly Step[] = [...statements(5), ...[1, 2, 3].map((n) => ({ at: 'pce', n }) as const)]

/**
 * Runs it, and kills its replica once that is at the step, or when the call is over without it; whether it was there. `usualMs`: how long
 * that usually takes.
 */
export async function killAt(
  { replicas, world, database }: Replicas,
  index: number,
  step: Step,
  run: () => Promise<void>,
  usualMs = USUAL_MS,
): Promise<boolean> {
  const replica = replicas[index]!
  const stop = watch()
  const done = run()
  const isReached = await Promise.race([stop.reached.then(() => true), done.then(() => false)])
  await replica.kill9()
  stop.cancel()
  await done
  return isReached

  function watch(): { reached: Promise<unknown>; cancel: () => void } {
    if (step.at === 'pce') {
      let left = step.n
      // Others ask the same PCE: it is one of the requests of this time, if not of this call.
      const held = world.pce.hold(() => --left === 0)
      return { reached: held.reached, cancel: () => held.release() }
    }
    if (database === undefined) {
      const reached = new Promise((resolve) => setTimeout(resolve, Math.random() * usualMs))
      return { reached, cancel: () => {} }
    }
    return replica.proxy.stopAt(step.n, { delivered: step.delivered })
  }
}
