import type { Fault } from '../http/inject-faults.js'
import { Refusal, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'

/** Asynchronous work of any kind, advanced by each read. */
export interface Progress {
  stage: 'waiting' | 'working' | 'done' | 'failed'
  polls: number
  /** How it will end; `stuck` never does, and what `expired` yields is gone before anyone comes for it. */
  fate: 'done' | 'failed' | 'stuck' | 'expired'
  /** What a failure says. */
  message: string
}

const FATES = { 'job-failed': 'failed', 'job-stuck': 'stuck', 'job-expired': 'expired' } as const

/** The work that a request starts ends well unless a fault struck the request. */
export function startProgress({ fault }: { fault?: Fault | null }): Progress {
  const fate = fault && fault.kind in FATES ? FATES[fault.kind as keyof typeof FATES] : 'done'
  return { stage: 'waiting', polls: 0, fate, message: typeof fault?.body === 'string' ? fault.body : 'The job failed' }
}

/** One more read. The last of `pollsUntilDone` finds the work ended, the one before that finds it begun. */
export function advance(progress: Progress, pollsUntilDone: number): Progress {
  const { stage, fate } = progress
  if (stage === 'done' || stage === 'failed') return progress
  const polls = progress.polls + 1
  if (polls >= pollsUntilDone && fate !== 'stuck') {
    return { ...progress, polls, stage: fate === 'failed' ? 'failed' : 'done' }
  }
  return { ...progress, polls, stage: polls > 1 || pollsUntilDone === 2 ? 'working' : 'waiting' }
}

/** Waiting or running: the reader is told when to come back. */
export function isPending({ stage }: Progress): boolean {
  return stage === 'waiting' || stage === 'working'
}

/** Throws 404 while there is no result, and what an expired one answers. */
export function requireResult({ stage, fate }: Progress): void {
  if (stage !== 'done') throw notFound()
  if (fate === 'expired') throw new Refusal(UNCERTAIN.expiredResultStatus, notFound().errors)
}
