import type { Fault } from '../http/inject-faults.js'
import { Refusal, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'

/** The progress of asynchronous work, such as a job, which advances by one step each time it is read. */
export interface Progress {
  stage: 'waiting' | 'working' | 'done' | 'failed'
  polls: number
  /**
   * How the work will end. `stuck` means that it never ends, and `expired` that its result is deleted before it can be
   * fetched.
   */
  fate: 'done' | 'failed' | 'stuck' | 'expired'
  /** The error message with which the work fails, if it fails. */
  message: string
}

const FATES = { 'job-failed': 'failed', 'job-stuck': 'stuck', 'job-expired': 'expired' } as const

/** Starts the asynchronous work of a request. The work will succeed unless a fault affects the request. */
export function startProgress({ fault }: { fault?: Fault | null }): Progress {
  const fate = fault && fault.kind in FATES ? FATES[fault.kind as keyof typeof FATES] : 'done'
  return { stage: 'waiting', polls: 0, fate, message: typeof fault?.body === 'string' ? fault.body : 'The job failed' }
}

/**
 * Advances the work by one read. Read number `pollsUntilDone` completes the work, and the read before it shows the work
 * in progress.
 */
export function advance(progress: Progress, pollsUntilDone: number): Progress {
  const { stage, fate } = progress
  if (stage === 'done' || stage === 'failed') return progress
  const polls = progress.polls + 1
  if (polls >= pollsUntilDone && fate !== 'stuck') {
    return { ...progress, polls, stage: fate === 'failed' ? 'failed' : 'done' }
  }
  return { ...progress, polls, stage: polls > 1 || pollsUntilDone === 2 ? 'working' : 'waiting' }
}

/** Returns true if the work is waiting or running, so that the caller must ask again. */
export function isPending({ stage }: Progress): boolean {
  return stage === 'waiting' || stage === 'working'
}

/**
 * Checks that the result of asynchronous work can be fetched. Throws 404 while there is no result, and a separate error
 * if the result has expired.
 */
export function requireResult({ stage, fate }: Progress): void {
  if (stage !== 'done') throw notFound()
  if (fate === 'expired') throw new Refusal(UNCERTAIN.expiredResultStatus, notFound().errors)
}
