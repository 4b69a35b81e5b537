import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { codeOf, factsOf } from '../inventory/pce-errors.js'
import type { Prepared } from './prepare-ringfence.js'
import type { OrderedEntry } from './order-batch.js'
import type { RingfenceWritten } from './write-ringfence.js'

export interface RingfenceDone {
  prepared: Prepared
  written: RingfenceWritten | null
}

/** What became of one application, in the order of the work. */
export type BatchOutcome = { app: string; env: string } & (
  | { status: 'success'; done: RingfenceDone }
  | { status: 'error'; error: Record<string, unknown> }
  | { status: 'skipped'; reason: 'duplicate' | 'stopped' }
)

/**
 * Works on one application after the other. A failure is that application's own, and with `stopOnError` the end: an application
 * that is not known then stops the batch before anything is written. When `signal` is aborted, the rest is skipped.
 */
export async function runBatch(
  { signal, log, progress }: Pick<ToolContext, 'signal' | 'log' | 'progress'>,
  order: readonly OrderedEntry[],
  { stopOnError }: { stopOnError: boolean },
  work: (entry: OrderedEntry & { state: 'ready' }) => Promise<RingfenceDone>,
): Promise<BatchOutcome[]> {
  const outcomes: BatchOutcome[] = []
  let isStopped = stopOnError && order.some(({ state }) => state === 'unknown')
  for (const [at, entry] of order.entries()) {
    const names = { app: entry.app, env: entry.env }
    if (entry.state === 'duplicate') outcomes.push({ ...names, status: 'skipped', reason: 'duplicate' })
    else if (entry.state === 'unknown') outcomes.push({ ...names, status: 'error', error: describeError(entry.error) })
    else if (isStopped || signal.aborted) outcomes.push({ ...names, status: 'skipped', reason: 'stopped' })
    else {
      progress({ progress: at, message: `Application ${at + 1} of ${order.length}: ${entry.app} (${entry.env}).` })
      try {
        outcomes.push({ ...names, status: 'success', done: await work(entry) })
      } catch (error) {
        if (!(error instanceof ToolError) && !(error instanceof PceError))
          log.warn({ err: error, ...names }, 'ringfence failed')
        outcomes.push({ ...names, status: 'error', error: describeError(error) })
        isStopped ||= stopOnError
      }
    }
  }
  return outcomes
}

/** Whether anything of an application was written. */
export const hasWritten = (outcome: BatchOutcome): boolean =>
  outcome.status === 'success'
    ? outcome.done.written !== null
    : outcome.status === 'error' && outcome.error['partial'] === true

/** The body an error has as an answer of its own (D3); of what nobody expected, nothing is told. */
function describeError(error: unknown): Record<string, unknown> {
  if (error instanceof ToolError) {
    const head = { error: error.code, message: error.message, ...(error.hint !== undefined && { hint: error.hint }) }
    return { ...error.details, ...head }
  }
  if (error instanceof PceError) return { ...factsOf(error), error: codeOf(error), message: error.message }
  return { error: 'internal', message: 'The server failed to handle this application. Its log has the details.' }
}
