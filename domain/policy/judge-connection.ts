import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
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

/** A function that returns what the rules of a policy say about a connection at each of its ends. */
export type RuleFinder = (connection: Connection) => (side: Side) => RulesAtEnd

/**
 * Creates a function that evaluates observed connections by one version of the policy, at each end and in any mode. It
 * decides like explain-flow (`judgeEnd`) and ignores the decision that the PCE recorded. If the policy is null,
 * everything that depends on it is undecided. At an end where iptables rules are in force, the verdict is undecided too
 * (P19).
 */
export function createConnectionJudge(
  policy: PolicySnapshot | null,
  findRules: RuleFinder = createRuleFinder(policy),
): (connection: Connection) => EndJudge {
  return (connection) => {
    const rulesAt = findRules(connection)
    return (side, mode) => judgeEnd(mode, side === 'src' ? 'outbound' : 'inbound', rulesAt(side))
  }
}

/** Prepares the rules of a policy for many connections; null stands for a policy that could not be read. */
export function createRuleFinder(policy: PolicySnapshot | null): RuleFinder {
  const compiled = policy === null ? null : compileTypes(policy, policy)
  const unread = policy === null ? unknown('unread_policy') : policy.unread.size > 0 ? unknown('unread_rules') : 'no'
  const unjudgedAt = policy === null ? () => 'no' as const : createIpTablesSearch(policy)
  return keepLast((connection) => {
    const { source, destination } = connection
    const essential = isEssential(connection) ? unknown('essential') : 'no'
    return (side) => {
      const says = (type: RuleType) => (compiled === null ? unread : compiled[type](connection, side))
      return {
        essential,
        overridden: anyOf([says('override_deny'), unread]),
        allowed: says('allow'),
        denied: anyOf([says('deny'), unread]),
        unjudged: unjudgedAt(side === 'src' ? source : destination),
      }
    }
  })
}

/** The rules of one rule set, prepared for many connections. */
export interface PreparedRuleSet {
  says: Record<RuleType, RulesSay>
  unjudgedAt: (end: FlowEnd) => Answer
}

/** Prepares the rules of one rule set. The objects to which they refer are looked up in `objects`. */
export const prepareRuleSet = (ruleSet: RuleSet, objects: PolicySnapshot): PreparedRuleSet => ({
  says: compileTypes({ ruleSets: [ruleSet], boundaries: [] }, objects),
  unjudgedAt: createIpTablesSearch({ ...objects, ruleSets: [ruleSet] }),
})

/**
 * Adds the rules of further rule sets to those of a policy. Nothing is prepared again, so a policy can be compared
 * cheaply with and without each of many rules.
 */
export function addRuleSets(findRules: RuleFinder, further: readonly PreparedRuleSet[]): RuleFinder {
  return keepLast((connection) => {
    const rulesAt = findRules(connection)
    return (side) => {
      const { essential, overridden, allowed, denied, unjudged } = rulesAt(side)
      const end = side === 'src' ? connection.source : connection.destination
      const add = (known: Answer, type: RuleType) =>
        anyAnswer(known, further, ({ says }) => says[type](connection, side))
      return {
        essential,
        overridden: add(overridden, 'override_deny'),
        allowed: add(allowed, 'allow'),
        denied: add(denied, 'deny'),
        unjudged: anyAnswer(unjudged, further, ({ unjudgedAt }) => unjudgedAt(end)),
      }
    }
  })
}

/** Combines the answers as `anyOf` does, but stops asking at the first yes. */
function anyAnswer(known: Answer, further: readonly PreparedRuleSet[], ask: (one: PreparedRuleSet) => Answer): Answer {
  const answers: Answer[] = [known]
  if (known === 'yes') return known
  for (const one of further) {
    const answer = ask(one)
    if (answer === 'yes') return answer
    if (answer !== 'no') answers.push(answer)
  }
  return anyOf(answers)
}

/**
 * Keeps the answers for the last connection, because several policies with common rules are asked about the same one in
 * turn.
 */
function keepLast(find: RuleFinder): RuleFinder {
  let last: { connection: Connection; known: Partial<Record<Side, RulesAtEnd>> } | null = null
  let rulesAt: ReturnType<RuleFinder>
  return (connection) => {
    if (last?.connection !== connection) {
      last = { connection, known: {} }
      rulesAt = find(connection)
    }
    const { known } = last
    const ask = rulesAt
    return (side) => (known[side] ??= ask(side))
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

/** Returns whether rules of one type match a connection at one of its ends. */
type RulesSay = (connection: Connection, side: Side) => Answer

/** Prepares the rules in force of each type. The objects to which they refer are looked up in `objects`. */
function compileTypes(rules: Parameters<typeof rulesInForce>[0], objects: PolicySnapshot): Record<RuleType, RulesSay> {
  const of = (type: RuleType): RulesSay => {
    const placed = rulesInForce(rules, type)
    if (placed.length === 0) return () => 'no'
    const matchesOf = compileByDestination(placed, objects)
    // The answer for the last connection is kept, because several policies with these rules are asked about the same
    // one in turn.
    let last: { connection: Connection; known: Partial<Record<Side, Answer>> } | null = null
    return (connection, side) => {
      if (last?.connection !== connection) last = { connection, known: {} }
      const { source, destination, port, proto } = connection
      const at = side === 'src' ? 'atSource' : 'atDestination'
      const isVirtual = standsForOthers(source) || standsForOthers(destination)
      return (last.known[side] ??= anyOf([
        ...matchesOf(destination).map((match) => match[at](source, port, proto)),
        isVirtual ? unknown('virtual_service') : 'no',
      ]))
    }
  }
  return { allow: of('allow'), deny: of('deny'), override_deny: of('override_deny') }
}
