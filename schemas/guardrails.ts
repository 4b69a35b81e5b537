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
 * A guardrail that limits a call by a number or a time, for people who look at the call. It is JSON, because it is stored
 * with questions about calls and is a part of answers.
 */
export interface TouchedGuardrail {
  readonly guardrail: Exclude<GuardrailCode, 'protected'>
  /** What the call does to it, and what follows, in sentences. */
  readonly message: string
  /** True if the call runs only after two persons have approved it. */
  readonly needs_two_persons: boolean
  /** Number of workloads that the call affects, null if it is not known, and the largest number that is allowed. */
  readonly workloads_affected?: number | null
  readonly max_workloads_affected?: number
  /** The window of the freeze as the operator wrote it, and the end of the freeze (RFC 3339); null if none is in sight. */
  readonly window?: string
  readonly frozen_until?: string | null
}

/** What no call may do, whoever makes it. Absent fields limit nothing. */
export interface GuardrailsConfig {
  readonly protectedLabels?: readonly ProtectedLabel[]
  readonly freezes?: readonly FreezeWindow[]
  /** Maximum number of workloads that one call may affect. */
  readonly maxWorkloads?: number
  /** True if two persons may override a freeze (MCP_FREEZE_OVERRIDE). Needs approval by a person. */
  readonly freezeOverride?: true
}
