import type { ApprovalEvent } from './approvals.js'
import type { ErrorCode } from './errors.js'
import type { StatePoolFigures } from './state.js'

/** One tool call that is over. */
export interface MeasuredCall {
  /** Undefined for a name that the caller is not offered: names are the client's to make up. */
  tool: string | undefined
  outcome: 'success' | 'error' | 'denied'
  /** Which gate refused it, or `handler`. */
  gate: string
  code: ErrorCode | null
  seconds: number
}

/** One request to a PCE that is over, with its retries. */
export interface MeasuredRequest {
  /** Method and path template, of a fixed set. */
  operation: string
  /** Of the last answer; undefined where there was none. */
  status: number | undefined
  /** Why it failed; undefined where it did not. */
  failure: string | undefined
  retries: number
  /** Between the attempts. */
  waitedSeconds: number
  seconds: number
}

/** Figures that are read when somebody asks for them. */
export interface MeasuredFigures {
  requestsInFlight: number
  heavyRunning: number
  heavyWaiting: number
  /** Where the state is in a database. */
  pool?: StatePoolFigures
}

/**
 * What the rooms tell of what happens in them, for the metrics; they are given none where those are off. Every text is of a fixed set:
 * none is a client's, a person's or a host's.
 */
export interface Meter {
  readonly toolCall: (call: MeasuredCall) => void
  readonly pceRequest: (request: MeasuredRequest) => void
  readonly tokenRefused: (reason: string) => void
  readonly keysFetched: (isLoaded: boolean) => void
  readonly approval: (event: ApprovalEvent) => void
  readonly auditFailed: (what: 'write' | 'sync' | 'check') => void
  readonly stateUsed: (operation: string, isDone: boolean, seconds: number) => void
  /** What has to work before the process takes calls, and who says which of it does not; null while all does. */
  readonly readinessFrom: (checks: readonly string[], findFailed: () => Promise<string | null>) => void
  /** Where the figures come from, once that is known. */
  readonly readFrom: (figures: () => MeasuredFigures) => void
}
