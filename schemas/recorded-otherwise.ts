import { Type } from '@sinclair/typebox'
import { Count } from './common.js'

/** How much traffic the PCE recorded otherwise than rules decide about it now. */
export interface RecordedOtherwise {
  /** Recorded as allowed, though no rule allows it. */
  allowed_without_rule: number
  /** Recorded as blocked or potentially blocked, though rules allow it. */
  stopped_despite_rule: number
}

/** The output property of every tool that judges recorded traffic by the policy (D78). */
export const RecordedOut = {
  recorded_otherwise: Type.Optional(
    Type.Object(
      {
        allowed_without_rule: Count('Recorded allowed, no rule allows them now'),
        stopped_despite_rule: Count('Recorded blocked, or potentially, rules allow them now'),
      },
      { description: 'Connections whose recorded decision is not what rules say now; the record decides nothing' },
    ),
  ),
}

/** Shows the counts; nothing if the record and the rules agree. */
export const showRecorded = (counts: RecordedOtherwise): { recorded_otherwise?: RecordedOtherwise } =>
  isAny(counts) ? { recorded_otherwise: { ...counts } } : {}

/** Returns a sentence about why record and rules may differ; empty if they agree. */
export const explainRecorded = (counts: RecordedOtherwise): string =>
  isAny(counts)
    ? 'recorded_otherwise: rules or modes changed since, selective mode let pass what no rule allows, or the PCE has an essential rule.'
    : ''

const isAny = ({ allowed_without_rule: allowed, stopped_despite_rule: stopped }: RecordedOtherwise) =>
  allowed + stopped > 0
