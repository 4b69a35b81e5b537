import type { FlowEnd } from '../traffic/flow-ends.js'
import { compileByDestination } from './compile-rules.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import { isModeUntold, mayPassByDefault, passesByDefault, stops } from './mode-effects.js'
import { anyOf, both, settle, unknown, type Answer } from './three-valued.js'

/** A connection that the PCE reports as allowed. */
export interface AllowedFlow {
  source: FlowEnd
  destination: FlowEnd
  /**
   * The enforcement modes of both ends: null for an end without a VEN; a text that is not a mode if the mode is not
   * known.
   */
  sourceMode: string | null
  destinationMode: string | null
  port: number | null
  proto: number | null
}

/** Returns whether rules allow the connection: 'no' if it passes only because no deny rule matches. */
export type JudgeAllowed = (flow: AllowedFlow) => Answer

/**
 * Creates the judge for connections that the PCE reports as allowed. In selective mode, this may only mean that no deny
 * rule matched (P52), so the judge looks for an allow rule at each end in that mode. If a deny rule applies, there must
 * be an allow rule, because the connection would not have been allowed otherwise; at a source, this is not settled (P51). An
 * end whose mode is not known may be in selective mode, so its rows are undecided unless rules allow them anyway. If the policy is null, everything that
 * depends on it is undecided.
 */
export function createAllowedJudge(policy: PolicySnapshot | null): JudgeAllowed {
  if (policy === null)
    return ({ sourceMode, destinationMode }) =>
      mayPassByDefault(sourceMode, destinationMode) ? unknown('unread_policy') : 'yes'
  const allows = compileByDestination(rulesInForce(policy, 'allow'), policy)
  const denies = compileByDestination(rulesInForce(policy, 'deny'), policy)
  return ({ source, destination, sourceMode, destinationMode, port, proto }) => {
    if (!mayPassByDefault(sourceMode, destinationMode)) return 'yes'
    const judgeAt = (end: 'atSource' | 'atDestination'): Answer => {
      const matches = (rules: typeof allows) =>
        anyOf(rules(destination).map((match) => match[end](source, port, proto)))
      const allowed = matches(allows)
      if (!passesByDefault(end === 'atSource' ? sourceMode : destinationMode)) return allowed
      if (allowed === 'yes') return allowed
      const denying = matches(denies)
      const dropped = stops('selective', end === 'atSource' ? 'outbound' : 'inbound', 'deny')
      if (both(denying, dropped) === 'yes') return settle(allowed, 'yes')
      // It is not settled whether the source enforces a deny rule that is about this connection (P51), so it is not
      // known either why the connection passes.
      return denying === 'yes' ? anyOf([allowed, dropped]) : allowed
    }
    const asks = (mode: string | null) => passesByDefault(mode) || isModeUntold(mode)
    const byRules = both(
      asks(destinationMode) ? judgeAt('atDestination') : 'yes',
      asks(sourceMode) ? judgeAt('atSource') : 'yes',
    )
    const isUntold = isModeUntold(sourceMode) || isModeUntold(destinationMode)
    return isUntold && byRules !== 'yes' ? anyOf([byRules, unknown('enforcement')]) : byRules
  }
}
