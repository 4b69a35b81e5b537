import { ToolError } from '../schemas/errors.js'
import type { Meter } from '../schemas/metrics.js'
import type { State } from '../schemas/state.js'

/** Wraps the state so that the duration of each operation is measured. Without a meter, returns the state itself. */
export function measureState(state: State, meter: Meter | undefined): State {
  if (meter === undefined) return state
  const timed =
    <A extends unknown[], R>(operation: string, run: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const started = performance.now()
      let isDone = false
      try {
        const result = await run(...args)
        isDone = true
        return result
      } catch (error) {
        // A ToolError is an intended refusal by the store, so it is measured as a success.
        isDone = error instanceof ToolError
        throw error
      } finally {
        meter.stateUsed(operation, isDone, (performance.now() - started) / 1000)
      }
    }
  const port = <P extends object>(name: string, operations: P): P =>
    Object.fromEntries(
      Object.entries(operations).map(([operation, run]) => [
        operation,
        timed(`${name}.${operation}`, (run as (...args: unknown[]) => Promise<unknown>).bind(operations)),
      ]),
    ) as P
  // Synchronous reads are not measured: they take microseconds, and measuring would make it asynchronous.
  const { getNow, edition, ...notes } = state.notes
  return {
    ...state,
    credentials: port('credentials', state.credentials),
    usedTokens: port('usedTokens', state.usedTokens),
    challenges: port('challenges', state.challenges),
    approvals: port('approvals', state.approvals),
    outbox: port('outbox', state.outbox),
    notes: { ...port('notes', notes), ...(getNow && { getNow }), ...(edition && { edition }) },
    ...(state.admissions && { admissions: port('admissions', state.admissions) }),
    checkWritable: timed('checkWritable', () => state.checkWritable()),
  }
}
