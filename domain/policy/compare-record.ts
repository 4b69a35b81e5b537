import { readDecision, isStopped } from '../../schemas/pce/policy-decisions.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { EndVerdict } from './judge-end.js'

/**
 * How the decision that the PCE recorded contradicts the rules: either the connection was allowed although no rule
 * allows it at an end that applies rules, or it was stopped although rules permit it at every such end. `null` if
 * decision and rules agree, or if the rules leave the decision open.
 */
export type Disagreement = keyof RecordedOtherwise | null

/** Compares the recorded decision on a connection with what the rules decide at each end in the mode of that end. */
export function compareRecord(recorded: string | null, ends: readonly EndVerdict[]): Disagreement {
  const word = readDecision(recorded)
  const managed = ends.filter(({ mode }) => mode !== 'none')
  // A workload in idle mode applies no rules, so the other end made the recorded decision, if that end has a VEN.
  const awake = managed.filter(({ mode }) => mode !== 'idle')
  const judging = awake.length > 0 ? awake : managed
  if (word === 'allowed') return judging.some(({ byRules }) => byRules === 'no') ? 'allowed_without_rule' : null
  if (!isStopped(word)) return null
  return judging.length > 0 && judging.every(({ byRules }) => byRules === 'yes') ? 'stopped_despite_rule' : null
}

/** Creates counters for recorded decisions that contradict the rules, all set to zero. */
export const noDisagreement = (): RecordedOtherwise => ({ allowed_without_rule: 0, stopped_despite_rule: 0 })
