import { isEssential } from '../inventory/protocols.js'
import { decide, judgeEnd, requireRules, type Decided, type EndVerdict } from '../policy/judge-end.js'
import { createIpTablesSearch } from '../policy/ip-tables.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { matchRules, type PolicyObjects, type RuleMatch } from '../policy/match-rules.js'
import { compileServices } from '../policy/match-services.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, unknown, type Answer } from '../policy/three-valued.js'
import type { Member } from './find-members.js'
import { listRules, type HeldRule } from './place-rules.js'

/**
 * The service that a caller asks about. `runs` returns whether a given Windows program is the one that the caller
 * named.
 */
export interface AskedService {
  port: number | null
  proto: number
  runs?: PolicyObjects['runs']
}

/**
 * A rule that matches a connection, and whether it matches at the source and at the destination. It may match at only
 * one of them, because the PCE does not send every rule to both.
 */
export interface ApplyingRule {
  held: HeldRule
  atSource: Answer
  atDestination: Answer
}

export interface PairVerdict extends Decided {
  source: EndVerdict
  destination: EndVerdict
  /** The matching rules, in the order in which the policy lists them. */
  rules: readonly ApplyingRule[]
}

/** A function that evaluates connections of one service by one version of the policy. */
export interface PairJudge {
  (source: Member, destination: Member): PairVerdict
  /** Lists the disabled rules that would match if they were enabled. */
  readonly off: (source: Member, destination: Member) => ApplyingRule[]
  /** Returns whether rules that cannot be evaluated, such as iptables rules, are in force at an end (P19). */
  readonly unjudgedAt: (end: Member) => Answer
  readonly objects: PolicyObjects
  readonly rules: readonly HeldRule[]
}

/** The options for evaluating connections. */
interface Judging {
  /** Rules to evaluate in addition to those of the policy. */
  more?: readonly HeldRule[]
  /**
   * If true, a connection that passes only because of an enforcement mode, not because of a rule, counts as potentially
   * blocked.
   */
  needsRules?: boolean
  /** If true, iptables rules are ignored, so that the verdict shows what allow and deny rules do by themselves. */
  ignoresIpTables?: boolean
}

/**
 * Creates a function that evaluates connections by the rules of one policy version. At each end, rules decide in this
 * order: essential rules, override deny, allow, deny, default of the mode. Both ends must permit a connection (P50,
 * P51). If deny rules could not be read, everything about which they might decide is undecided. At an end where
 * iptables rules are in force, the verdict is undecided too (P19).
 */
export function createPairJudge(
  policy: PolicySnapshot,
  service: AskedService,
  { more = [], needsRules = false, ignoresIpTables = false }: Judging = {},
): PairJudge {
  const objects = withAddresses(policy)
  const { port, proto } = service
  const all = [...listRules(policy), ...more]
  const speaking = all.filter((held) => mayServe(held, objects, service))
  const compile = (rules: readonly HeldRule[]) => {
    const compiled = new WeakMap<Member, CompiledRule[]>()
    const prepare = (held: HeldRule, destination: Member): CompiledRule => {
      const programs = objectsAtEnds(objects, service, destination)
      const there = matchRules([held], destination, programs.atDestination)
      const here =
        programs.atSource === programs.atDestination ? there : matchRules([held], destination, programs.atSource)
      return { held, atSource: here.atSource, atDestination: there.atDestination }
    }
    return (source: Member, destination: Member): ApplyingRule[] => {
      const known = compiled.get(destination) ?? rules.map((held) => prepare(held, destination))
      compiled.set(destination, known)
      return known.flatMap((match) => {
        const atDestination = match.atDestination(source, port, proto)
        const atSource = match.atSource(source, port, proto)
        return atDestination === 'no' && atSource === 'no' ? [] : [{ held: match.held, atSource, atDestination }]
      })
    }
  }
  const inForce = compile(speaking.filter(({ off }) => off === null))
  const unread: Answer = policy.unread.size > 0 ? unknown('unread_rules') : 'no'
  const unjudgedAt: PairJudge['unjudgedAt'] = ignoresIpTables ? () => 'no' : createIpTablesSearch(policy)
  const essential: Answer = isEssential({ port, proto }) ? unknown('essential') : 'no'
  const judge = (source: Member, destination: Member): PairVerdict => {
    const rules = inForce(source, destination)
    const at = (end: 'atSource' | 'atDestination', { mode }: Member) => {
      const direction = end === 'atSource' ? 'outbound' : 'inbound'
      const says = (type: RuleType) => anyOf(rules.flatMap((one) => (one.held.kind === type ? [one[end]] : [])))
      const verdict = judgeEnd(mode, direction, {
        essential,
        overridden: anyOf([says('override_deny'), unread]),
        allowed: says('allow'),
        denied: anyOf([says('deny'), unread]),
        unjudged: unjudgedAt(end === 'atSource' ? source : destination),
      })
      return needsRules ? requireRules(verdict) : verdict
    }
    const [out, into] = [at('atSource', source), at('atDestination', destination)]
    return { ...decide(out, into), source: out, destination: into, rules }
  }
  return Object.assign(judge, {
    off: compile(speaking.filter(({ off }) => off !== null)),
    unjudgedAt,
    objects,
    rules: all,
  })
}

/**
 * Returns true if a rule may apply to the service. A rule for a virtual service always may, because the matcher does
 * not know the service's ports.
 */
function mayServe({ rule }: HeldRule, objects: PolicyObjects, { port, proto }: AskedService): boolean {
  const isVirtual =
    rule.resolve_labels_as?.providers.includes('virtual_services') === true ||
    rule.providers.some((actor) => actor.virtual_service !== undefined || actor.virtual_server !== undefined)
  return isVirtual || compileServices(rule.ingress_services, objects)(port, proto) !== 'no'
}

type CompiledRule = Pick<RuleMatch, 'atSource' | 'atDestination'> & { held: HeldRule }

/**
 * Returns the functions that look up objects for the source and for the destination. Only the VEN on a Windows
 * destination knows which program uses a port. The source's VEN cannot tell programs apart, so a rule for another
 * program may apply there as well.
 */
function objectsAtEnds(
  objects: PolicyObjects,
  { runs }: AskedService,
  { os }: Member,
): Record<'atSource' | 'atDestination', PolicyObjects> {
  if (runs === undefined || os !== 'windows') return { atSource: objects, atDestination: objects }
  const atSource: PolicyObjects['runs'] = (program) => (runs(program) === 'yes' ? 'yes' : unknown('process'))
  return { atSource: { ...objects, runs: atSource }, atDestination: { ...objects, runs } }
}

/**
 * Returns lookup functions that compare an IP list with all addresses of a member. The list contains the member if it
 * contains all its addresses; if it contains only some, the answer is undecided.
 */
function withAddresses(policy: PolicySnapshot): PolicyObjects {
  return {
    ...policy,
    covers(list, end) {
      const addresses = (end as Partial<Member>).addresses
      if (addresses === undefined || addresses.length < 2) return policy.covers(list, end)
      const answers = new Set(addresses.map((ip) => policy.covers(list, { ip, fqdn: end.fqdn })))
      const [only] = answers
      return answers.size === 1 && only !== undefined ? only : unknown('address')
    },
  }
}
