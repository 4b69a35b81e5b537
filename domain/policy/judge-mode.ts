import type { EnforcementMode } from '../../schemas/pce/workload.js'
import { isEssential } from '../inventory/protocols.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { compileByDestination } from './judge-allowed.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import { anyOf, both, not, settle, unknown, type Answer } from './three-valued.js'

/** A connection that goes through today, and what the PCE says of it. */
export interface PassingFlow {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  /** As the PCE gives it: the harder one of both ends. */
  decision: string | null
}

/** Which end changes its mode, from what to what; null: it has no VEN yet. */
export interface ModeChange {
  from: EnforcementMode | null
  to: EnforcementMode
}

/** Whether the end on this side would drop the connection in its new mode. */
export type JudgeDropped = (flow: PassingFlow, side: Side) => Answer

const HIDDEN = unknown('hidden')

/**
 * Judges what an end drops in another mode, by the policy in force (P50): an override deny, and what no rule allows where the mode
 * (full) or a deny rule (selective) denies it. What the PCE decided counts as well where it can only be this end's word. Without
 * the policy (null), whatever depends on it is undecided.
 */
export const createModeJudge = (policy: PolicySnapshot | null, change: ModeChange): JudgeDropped =>
  createModeJudges(policy)(change)

/** The same for ends that change their modes in different ways: the policy is compiled once, when the first judge needs it. */
export function createModeJudges(policy: PolicySnapshot | null): (change: ModeChange) => JudgeDropped {
  let rules: ReturnType<typeof compile> | null = null
  return ({ from, to }) => {
    if (!isEnforcing(to)) return () => 'no'
    if (policy !== null) rules ??= compile(policy)
    const unread = policy === null ? unknown('unread_policy') : policy.unread.size > 0 ? unknown('unread_rules') : 'no'
    return (flow, side) => {
      const { source, destination, port, proto, decision } = flow
      // An end that reports or enforces by rules lets nothing pass as allowed that they do not allow (P52).
      if (decision === 'allowed' && (from === 'visibility_only' || from === 'full')) return 'no'
      const at = side === 'src' ? 'atSource' : 'atDestination'
      const matches = (kind: 'allow' | 'deny' | 'override_deny'): Answer =>
        rules === null ? unread : anyOf(rules[kind](destination).map((match) => match[at](source, port, proto)))
      const essential = isEssential(flow) ? unknown('essential') : 'no'
      const allowed = anyOf([settle(toldAllowed(flow, side, from), matches('allow')), essential])
      const denied = to === 'full' ? 'yes' : anyOf([matches('deny'), unread])
      // What VENs keep open comes before every rule (P50).
      const overridden = both(anyOf([matches('override_deny'), unread]), not(essential))
      return anyOf([overridden, both(denied, not(allowed))])
    }
  }
}

/** How much of the traffic modes drop: what one drops, every mode after it drops as well (P50). */
const DROPS: Readonly<Record<EnforcementMode, number>> = { idle: 0, visibility_only: 0, selective: 1, full: 2 }

/** Whether a mode drops anything at all. */
export const isEnforcing = (mode: EnforcementMode): boolean => DROPS[mode] > 0

/** Whether a change of mode can only drop more, can only let more pass, or makes no difference to what is dropped. */
export function directionOf({ from, to }: ModeChange): 'stricter' | 'looser' | 'same' {
  const difference = DROPS[to] - (from === null ? 0 : DROPS[from])
  return difference > 0 ? 'stricter' : difference < 0 ? 'looser' : 'same'
}

function compile(policy: PolicySnapshot) {
  const of = (kind: 'allow' | 'deny' | 'override_deny') => compileByDestination(rulesInForce(policy, kind), policy)
  return { allow: of('allow'), deny: of('deny'), override_deny: of('override_deny') }
}

/** Whether rules allow it at this end, as far as the decision tells: where nobody else can have said that it would be blocked. */
function toldAllowed({ source, destination, decision }: PassingFlow, side: Side, from: string | null): Answer {
  const other = side === 'src' ? destination : source
  const isAlone = other.workload === null || !other.managed || other.mode === 'idle'
  return decision === 'potentially_blocked' && from === 'visibility_only' && isAlone ? 'no' : HIDDEN
}
