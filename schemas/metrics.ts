import type { ApprovalEvent } from './approvals.js'
import type { ErrorCode } from './errors.js'
import type { StatePoolFigures } from './state.js'

/** The facts about one finished tool call that the metrics count. */
export interface MeasuredCall {
  /**
   * Name of the tool; undefined if the caller is not offered a tool of this name, because a client could send any text
   * as a name.
   */
  tool: string | undefined
  outcome: 'success' | 'error' | 'denied'
  /** The gate that refused the call, or `handler` if no gate refused it. */
  gate: string
  code: ErrorCode | null
  seconds: number
}

/** The facts about one finished request to a PCE, including its retries, that the metrics count. */
export interface MeasuredRequest {
  /** Method and path template of the request, from a fixed set. */
  operation: string
  /** Status of the last answer; undefined if there was none. */
  status: number | undefined
  /** Error code of a failed request; undefined if it succeeded. */
  failure: string | undefined
  retries: number
  /** Seconds that the request spent waiting between its attempts. */
  waitedSeconds: number
  seconds: number
}

/**
 * The outcome of a notification. `failed` counts attempts to send; all other values count messages: `repeated` ones
 * were suppressed and are only counted in a later message, `dropped` ones did not fit into the outbox, and for
 * `given_up` ones, attempts to send have ended.
 */
export const NOTIFICATION_FATES = ['sent', 'failed', 'repeated', 'dropped', 'given_up'] as const
export type NotificationFate = (typeof NOTIFICATION_FATES)[number]

/** Figures that are determined anew each time the metrics are requested. */
export interface MeasuredFigures {
  requestsInFlight: number
  heavyRunning: number
  heavyWaiting: number
  /** Number of notifications that wait in the outbox; absent if there is no receiver. */
  notificationsWaiting?: number
  /** The database connections; present only if the state is in a database. */
  pool?: StatePoolFigures
}

/**
 * The interface through which parts of the server report events for the metrics. If metrics are off, this object does
 * not exist. All strings come from fixed sets: no client, person or host can choose them.
 */
export interface Meter {
  readonly toolCall: (call: MeasuredCall) => void
  readonly pceRequest: (request: MeasuredRequest) => void
  readonly tokenRefused: (reason: string) => void
  readonly keysFetched: (isLoaded: boolean) => void
  readonly approval: (event: ApprovalEvent) => void
  readonly notification: (fate: NotificationFate, times?: number) => void
  readonly auditFailed: (what: 'write' | 'sync' | 'check') => void
  readonly stateUsed: (operation: string, isDone: boolean, seconds: number) => void
  /**
   * Registers the names of the checks that must pass before the process accepts calls. `findFailed` returns the name of
   * a check that fails at the moment, or null if all pass.
   */
  readonly readinessFrom: (checks: readonly string[], findFailed: () => Promise<string | null>) => void
  /** Registers the function that returns the current figures. Called as soon as that function exists. */
  readonly readFrom: (figures: () => MeasuredFigures) => void
}
