import { allowsByRule, dropsOf, isEnforcing, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import { isEssential } from '../inventory/protocols.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { compileByDestination } from './judge-allowed.js'
import { hasIpTablesFor } from './ip-tables.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import type { End } from './match-rules.js'
import { reportsWithoutRule, stops, type Deciding } from './mode-effects.js'
import type { RuleType } from './rule-type.js'
import { anyOf, both, not, settle, unknown, type Answer } from './three-valued.js'

/** A connection that passes today, and the decision the PCE reports for it. */
export interface PassingFlow {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  /** The decision as the PCE reports it, which is the stricter one of both ends. */
  decision: string | null
}

/** The change of an end's enforcement mode; `from` is null if it has no VEN yet. */
export interface ModeChange {
  from: EnforcementMode | null
  to: EnforcementMode
}

/** Tells whether the end on this side would drop the connection in its new mode. */
export type JudgeDropped = (flow: PassingFlow, side: Side) => Answer

const HIDDEN = unknown('hidden')

/**
 * Creates the judge for what an end drops in another mode, by the active policy and by what the mode does in this
 * direction (`mode-effects.ts`): connections matched by an override deny rule, and connections without an allow rule
 * that the mode or a deny rule denies. The decision of the PCE is used as well if only this end can have made it. If
 * the policy is null, whatever depends on it is undecided, and so is an end that has rules in the words of iptables.
 */
export const createModeJudge = (policy: PolicySnapshot | null, change: ModeChange): JudgeDropped =>
  createModeJudges(policy)(change)

/**
 * Like `createModeJudge`, for ends that change their modes in different ways. The policy is compiled once, when the
 * first judge needs it.
 */
export function createModeJudges(policy: PolicySnapshot | null): (change: ModeChange) => JudgeDropped {
  let rules: ReturnType<typeof compile> | null = null
  return ({ from, to }) => {
    if (!isEnforcing(to)) return () => 'no'
    if (policy !== null) rules ??= compile(policy)
    const unread = policy === null ? unknown('unread_policy') : policy.unread.size > 0 ? unknown('unread_rules') : 'no'
    const tables = policy?.ruleSets.filter(({ ip_tables_rules: own }) => (own ?? []).length > 0) ?? []
    const mayBypass = (end: End) =>
      policy !== null && tables.some((ruleSet) => hasIpTablesFor(ruleSet, end, policy) !== 'no')
    return (flow, side) => {
      const { source, destination, port, proto, decision } = flow
      // In these modes an end reports a connection as allowed only if its rules allow it (P52).
      if (decision === 'allowed' && allowsByRule(from)) return 'no'
      if (mayBypass(side === 'src' ? source : destination)) return unknown('iptables')
      const at = side === 'src' ? 'atSource' : 'atDestination'
      const matches = (type: RuleType): Answer =>
        rules === null ? unread : anyOf(rules[type](destination).map((match) => match[at](source, port, proto)))
      const essential = isEssential(flow) ? unknown('essential') : 'no'
      const allowed = anyOf([settle(toldAllowed(flow, side, from), matches('allow')), essential])
      const stopped = (by: Deciding, answer: Answer) =>
        both(answer, stops(to, at === 'atSource' ? 'outbound' : 'inbound', by))
      const denied = anyOf([stopped('default', 'yes'), stopped('deny', anyOf([matches('deny'), unread]))])
      // The traffic that VENs always allow takes precedence over all rules (P50).
      const overridden = both(stopped('override_deny', anyOf([matches('override_deny'), unread])), not(essential))
      return anyOf([overridden, both(denied, not(allowed))])
    }
  }
}

/** Returns whether a change of mode drops more (stricter), drops less (looser), or makes no difference. */
export function directionOf({ from, to }: ModeChange): 'stricter' | 'looser' | 'same' {
  const difference = dropsOf(to) - (from === null ? 0 : dropsOf(from))
  return difference > 0 ? 'stricter' : difference < 0 ? 'looser' : 'same'
}

function compile(policy: PolicySnapshot) {
  const of = (type: RuleType) => compileByDestination(rulesInForce(policy, type), policy)
  return { allow: of('allow'), deny: of('deny'), override_deny: of('override_deny') }
}

/**
 * Tells from the PCE's decision whether rules allow the connection at this end. That is possible only if the other end
 * cannot be the one that reported the connection as potentially blocked.
 */
function toldAllowed({ source, destination, decision }: PassingFlow, side: Side, from: string | null): Answer {
  const other = side === 'src' ? destination : source
  const isAlone = other.workload === null || !other.managed || other.mode === 'idle'
  return decision === 'potentially_blocked' && reportsWithoutRule(from) && isAlone ? 'no' : HIDDEN
}
