import type { ErrorCode } from './errors.js'

/** The codes of the refusals by which guardrails hold for every caller, whatever the role. */
export const GUARDRAIL_CODES = ['protected', 'frozen', 'too_many_workloads'] as const satisfies readonly ErrorCode[]
export type GuardrailCode = (typeof GUARDRAIL_CODES)[number]

/** A label as its key and value, which are compared exactly. */
export interface ProtectedLabel {
  readonly key: string
  readonly value: string
}

/**
 * Times in which provisioning and enforcement changes are refused (MCP_FREEZE_WINDOWS), by the clocks of a time zone.
 * `text` is the window as the operator wrote it.
 */
export type FreezeWindow = {
  readonly text: string
  /** Name of a time zone, such as Europe/Berlin. */
  readonly zone: string
} & (
  | {
      /** From one time of day, or of the week, to the next occurrence of another. */
      readonly is: 'recurring'
      readonly from: ClockTime
      readonly to: ClockTime
    }
  | {
      readonly is: 'single'
      /** Local date and time, in minutes since the epoch as if the zone were UTC. */
      readonly from: number
      readonly to: number
    }
)

/** A time of day, in minutes since midnight; with a day of the week (0 is Sunday), a time of the week. */
export interface ClockTime {
  readonly day?: number
  readonly minute: number
}

/** What no call may do, whoever makes it. Absent fields limit nothing. */
export interface GuardrailsConfig {
  readonly protectedLabels?: readonly ProtectedLabel[]
  readonly freezes?: readonly FreezeWindow[]
  /** Maximum number of workloads that a call may affect. */
  readonly maxWorkloads?: number
}
