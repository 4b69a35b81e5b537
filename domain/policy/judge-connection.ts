import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import { isEssential } from '../inventory/protocols.js'
import type { Side } from '../traffic/columns.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { compileByDestination } from './compile-rules.js'
import { createIpTablesSearch } from './ip-tables.js'
import { judgeEnd, type EndVerdict, type RulesAtEnd } from './judge-end.js'
import { rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import type { RuleType } from './rule-type.js'
import { anyOf, unknown, type Answer } from './three-valued.js'

/** A connection between a source and a destination, without the decision that the PCE recorded. */
export interface Connection {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
}

/** A function that returns what one end of a connection would do with the connection in the given enforcement mode. */
export type EndJudge = (side: Side, mode: EndMode) => EndVerdict

/**
 * Creates a function that evaluates observed connections by one version of the policy, at each end and in any mode. It
 * decides like explain-flow (`judgeEnd`) and ignores the decision that the PCE recorded. If the policy is null,
 * everything that depends on it is undecided. At an end where iptables rules are in force, the verdict is undecided too
 * (P19).
 */
export function createConnectionJudge(policy: PolicySnapshot | null): (connection: Connection) => EndJudge {
  const compiled = policy === null ? null : compileTypes(policy)
  const unread = policy === null ? unknown('unread_policy') : policy.unread.size > 0 ? unknown('unread_rules') : 'no'
  const unjudgedAt = policy === null ? () => 'no' as const : createIpTablesSearch(policy)
  return (connection) => {
    const { source, destination, port, proto } = connection
    const essential = isEssential(connection) ? unknown('essential') : 'no'
    const virtual = standsForOthers(source) || standsForOthers(destination) ? unknown('virtual_service') : 'no'
    const known: Partial<Record<Side, RulesAtEnd>> = {}
    const rulesAt = (side: Side): RulesAtEnd => {
      const at = side === 'src' ? 'atSource' : 'atDestination'
      const says = (type: RuleType): Answer => {
        if (compiled === null) return unread
        const { isEmpty, matchesOf } = compiled[type]
        if (isEmpty) return 'no'
        return anyOf([...matchesOf(destination).map((match) => match[at](source, port, proto)), virtual])
      }
      return {
        essential,
        overridden: anyOf([says('override_deny'), unread]),
        allowed: says('allow'),
        denied: anyOf([says('deny'), unread]),
        unjudged: unjudgedAt(side === 'src' ? source : destination),
      }
    }
    return (side, mode) => judgeEnd(mode, side === 'src' ? 'outbound' : 'inbound', (known[side] ??= rulesAt(side)))
  }
}

/** Returns whether a verdict means that the connection is dropped at this end. */
export function dropsBy({ possible, undecided }: EndVerdict): Answer {
  if (!possible.includes('blocked')) return 'no'
  return possible.length === 1 ? 'yes' : undecided
}

/**
 * Returns true for a source or destination that has labels but is not a workload, such as a virtual service. Rules may
 * select the workloads behind it, which this server does not know.
 */
export const standsForOthers = ({ workload, labels }: FlowEnd): boolean =>
  workload === null && Object.keys(labels).length > 0

function compileTypes(policy: PolicySnapshot) {
  const of = (type: RuleType) => {
    const rules = rulesInForce(policy, type)
    return { isEmpty: rules.length === 0, matchesOf: compileByDestination(rules, policy) }
  }
  return { allow: of('allow'), deny: of('deny'), override_deny: of('override_deny') }
}
