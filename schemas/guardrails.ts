import type { ErrorCode } from './errors.js'

/** The error codes of refusals by guardrails, which apply to every caller, whatever the role. */
export const GUARDRAIL_CODES = ['protected', 'frozen', 'too_many_workloads'] as const satisfies readonly ErrorCode[]
export type GuardrailCode = (typeof GUARDRAIL_CODES)[number]

/** A label, identified by its key and value, which are compared exactly. */
export interface ProtectedLabel {
  readonly key: string
  readonly value: string
}

/**
 * A period in which provisioning and enforcement changes are refused (MCP_FREEZE_WINDOWS), by the local time of a time
 * zone. `text` is the window as the operator wrote it.
 */
export type FreezeWindow = {
  readonly text: string
  /** Name of a time zone, such as Europe/Berlin. */
  readonly zone: string
} & (
  | {
      /** A period that recurs daily or weekly: it begins at every `from` and ends at the next `to`. */
      readonly is: 'recurring'
      readonly from: ClockTime
      readonly to: ClockTime
    }
  | {
      readonly is: 'single'
      /**
       * The beginning of a single period, in local time, as minutes since the epoch calculated as if the time zone were
       * UTC. `to` is its end.
       */
      readonly from: number
      readonly to: number
    }
)

/** A time of day, in minutes since midnight. With `day` (0 is Sunday), it is a time of the week. */
export interface ClockTime {
  readonly day?: number
  readonly minute: number
}

/**
 * A guardrail that limits a call by a number or by time, as it is shown to people. It is stored together with questions
 * about calls and is part of answers, so it is plain JSON.
 */
export interface TouchedGuardrail {
  readonly guardrail: Exclude<GuardrailCode, 'protected'>
  /** Sentences about how the call touches the guardrail, and what follows from that. */
  readonly message: string
  /** True if the call runs only after two persons have approved it. */
  readonly needs_two_persons: boolean
  /** Number of workloads that the call affects (null if it is not known), and the maximum number that is allowed. */
  readonly workloads_affected?: number | null
  readonly max_workloads_affected?: number
  /**
   * The window of the freeze as the operator wrote it, and the end of the freeze (RFC 3339); null if its end is not
   * known.
   */
  readonly window?: string
  readonly frozen_until?: string | null
}

/** The operator's limits for every call, whoever makes it. Absent fields limit nothing. */
export interface GuardrailsConfig {
  readonly protectedLabels?: readonly ProtectedLabel[]
  readonly freezes?: readonly FreezeWindow[]
  /** Maximum number of workloads that one call may affect. */
  readonly maxWorkloads?: number
  /**
   * True if two persons may override a freeze (MCP_FREEZE_OVERRIDE). This requires that people approve calls on a page.
   */
  readonly freezeOverride?: true
}
