import { Type } from '@sinclair/typebox'
import { Counts } from './common.js'

/** Numbers of connections for which the PCE recorded a different decision than the rules would give now. */
export interface RecordedOtherwise {
  /** Number of connections recorded as allowed, although no rule allows them. */
  allowed_without_rule: number
  /** Number of connections recorded as blocked or potentially blocked, although rules allow them. */
  stopped_despite_rule: number
}

/** The output property of every tool that compares recorded traffic with the policy (D78). */
export const RecordedOut = {
  recorded_otherwise: Type.Optional(
    Counts(
      'Connections recorded otherwise than rules decide now: allowed_without_rule, stopped_despite_rule (recorded as blocked or potentially blocked)',
    ),
  ),
}

/** Returns the output property with the counts, or `{}` if the records and the rules agree. */
export const showRecorded = (counts: RecordedOtherwise): { recorded_otherwise?: Record<string, number> } =>
  isOtherwise(counts) ? { recorded_otherwise: { ...counts } } : {}

/** Returns a sentence that explains why the records and the rules may differ, or an empty string if they agree. */
export const explainRecorded = (counts: RecordedOtherwise): string =>
  isOtherwise(counts)
    ? 'recorded_otherwise: rules or modes changed since, selective mode let pass what no rule allows, or the PCE has an essential rule.'
    : ''

/** Returns true if, for any connection, the recorded decision differs from the one that the rules give now. */
export const isOtherwise = ({ allowed_without_rule: allowed, stopped_despite_rule: stopped }: RecordedOtherwise) =>
  allowed + stopped > 0
