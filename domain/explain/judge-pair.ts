import { ENFORCEMENT_MODES, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import { JUDGED_DECISIONS, type JudgedDecision } from '../../schemas/pce/policy-decisions.js'
import { isEssential } from '../inventory/protocols.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { matchRules, type PolicyObjects, type RuleMatch } from '../policy/match-rules.js'
import { compileServices } from '../policy/match-services.js'
import { onlyReports, stops, type Deciding, type Direction } from '../policy/mode-effects.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, both, isUnknown, not, unknown, type Answer } from '../policy/three-valued.js'
import type { Member } from './find-members.js'
import { listRules, type HeldRule } from './place-rules.js'

/**
 * The service that a caller asks about. `runs` tells whether the program of a Windows service is the one asked about.
 */
export interface AskedService {
  port: number | null
  proto: number
  runs?: PolicyObjects['runs']
}

/** What decided at one end: the first of these, in this order, that applies (P50). */
export type Step = 'not_enforced' | RuleType | 'default'

/** What one end does with a connection. */
export interface EndVerdict {
  mode: EndMode
  /** The possible outcomes; more than one if the verdict is undecided. */
  possible: readonly JudgedDecision[]
  /** What decided; null if the verdict is undecided. */
  step: Step | null
  undecided: Answer
  /** Whether rules that are written to this end allow the connection, in every mode; 'yes' if the end has no VEN. */
  byRules: Answer
}

/** A rule that matches a connection, at the ends the rule is written to. */
export interface ApplyingRule {
  held: HeldRule
  atSource: Answer
  atDestination: Answer
}

export interface PairVerdict {
  decision: JudgedDecision | 'uncertain'
  possible: readonly JudgedDecision[]
  /** The reasons, if the decision is uncertain. */
  undecided: Answer
  source: EndVerdict
  destination: EndVerdict
  /** The matching rules in the order of the policy. */
  rules: readonly ApplyingRule[]
}

/** Judges connections of one service by one version of the policy. */
export interface PairJudge {
  (source: Member, destination: Member): PairVerdict
  /** Lists the disabled rules that would match if they were enabled. */
  readonly off: (source: Member, destination: Member) => ApplyingRule[]
  readonly objects: PolicyObjects
  readonly rules: readonly HeldRule[]
}

/** What to judge besides the rules of a version, and how. */
interface Judging {
  /** Rules that are judged in addition. */
  more?: readonly HeldRule[]
  /** Judge as potentially blocked what passes only because the mode of an end lets it, and not because of a rule. */
  needsRules?: boolean
}

/**
 * Creates a judge that uses the rules of one version. At each end the order is: essential rules, override deny, allow,
 * deny, default of the mode. Both ends must permit a connection (P50, P51). If deny rules could not be read, whatever
 * they may decide is undecided.
 */
export function createPairJudge(
  policy: PolicySnapshot,
  service: AskedService,
  { more = [], needsRules = false }: Judging = {},
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
      })
      return needsRules ? requireRules(verdict) : verdict
    }
    const [out, into] = [at('atSource', source), at('atDestination', destination)]
    const { decision, possible } = decide(out, into)
    const undecided =
      decision === 'uncertain' ? anyOf([out.undecided, into.undecided].filter(isUnknown)) : ('no' as const)
    return { decision, possible, undecided, source: out, destination: into, rules }
  }
  return Object.assign(judge, { off: compile(speaking.filter(({ off }) => off !== null)), objects, rules: all })
}

/** Replaces "allowed" by what it is in the eyes of the rules: potentially blocked, unless they allow the connection. */
function requireRules(verdict: EndVerdict): EndVerdict {
  const { byRules, possible, undecided } = verdict
  if (byRules === 'yes' || !possible.includes('allowed')) return verdict
  const isOpen = isUnknown(byRules)
  const words = possible.flatMap((word): JudgedDecision[] =>
    word !== 'allowed' ? [word] : isOpen ? ['allowed', 'potentially_blocked'] : ['potentially_blocked'],
  )
  const distinct = JUDGED_DECISIONS.filter((word) => words.includes(word))
  if (distinct.length === 1) return { ...verdict, possible: distinct, undecided: 'no' }
  return { ...verdict, possible: distinct, step: null, undecided: anyOf([undecided, byRules].filter(isUnknown)) }
}

/** Combines the verdicts of both ends. A connection passes only if both permit it. */
export function decide(source: EndVerdict, destination: EndVerdict): Pick<PairVerdict, 'decision' | 'possible'> {
  const possible = JUDGED_DECISIONS.filter((decision) =>
    source.possible.some((a) => destination.possible.some((b) => harder(a, b) === decision)),
  )
  const [only, ...others] = possible
  return { decision: only !== undefined && others.length === 0 ? only : 'uncertain', possible }
}

const harder = (a: JudgedDecision, b: JudgedDecision): JudgedDecision =>
  JUDGED_DECISIONS.indexOf(a) > JUDGED_DECISIONS.indexOf(b) ? a : b

/** What the rules that are written to one end say about a connection. */
interface RulesAtEnd {
  essential: Answer
  overridden: Answer
  allowed: Answer
  denied: Answer
}

/**
 * Judges what an end in this mode does. If the mode is not known, the verdict is undecided, unless it is the same in
 * every mode.
 */
export function judgeEnd(mode: EndMode, direction: Direction, rules: RulesAtEnd): EndVerdict {
  if (mode === 'none') return { mode, possible: ['allowed'], step: 'not_enforced', undecided: 'no', byRules: 'yes' }
  const { essential, overridden, allowed, denied } = rules
  const byRules = both(anyOf([allowed, essential]), not(overridden))
  if (mode === 'idle') return { mode, possible: ['allowed'], step: 'not_enforced', undecided: 'no', byRules }
  if (mode === 'unknown') {
    const each = ENFORCEMENT_MODES.map((one) => judgeEnd(one, direction, rules))
    const possible = JUDGED_DECISIONS.filter((decision) => each.some((one) => one.possible.includes(decision)))
    if (possible.length === 1) return { mode, possible, step: each.at(-1)?.step ?? null, undecided: 'no', byRules }
    const undecided = anyOf([unknown('enforcement'), ...each.map((one) => one.undecided)])
    return { mode, possible, step: null, undecided, byRules }
  }
  const stopped = (by: Deciding, matches: Answer) => both(matches, stops(mode, direction, by))
  const unlessAllowed = anyOf([stopped('deny', denied), stopped('default', 'yes')])
  const dropped = both(anyOf([stopped('override_deny', overridden), both(not(allowed), unlessAllowed)]), not(essential))
  const loss: JudgedDecision = onlyReports(mode, direction) ? 'potentially_blocked' : 'blocked'
  if (isUnknown(dropped)) return { mode, possible: ['allowed', loss], step: null, undecided: dropped, byRules }
  const possible: JudgedDecision[] = [dropped === 'yes' ? loss : 'allowed']
  return { mode, possible, step: stepOf(dropped, rules), undecided: 'no', byRules }
}

function stepOf(dropped: 'yes' | 'no', { overridden, allowed, denied }: RulesAtEnd): Step {
  if (dropped === 'no') return allowed === 'yes' ? 'allow' : 'default'
  if (overridden === 'yes') return 'override_deny'
  return denied === 'yes' ? 'deny' : 'default'
}

/**
 * Returns true if a rule may apply to the service, either by its own services or by those of a virtual service, which
 * are not known here.
 */
function mayServe({ rule }: HeldRule, objects: PolicyObjects, { port, proto }: AskedService): boolean {
  const isVirtual =
    rule.resolve_labels_as?.providers.includes('virtual_services') === true ||
    rule.providers.some((actor) => actor.virtual_service !== undefined || actor.virtual_server !== undefined)
  return isVirtual || compileServices(rule.ingress_services, objects)(port, proto) !== 'no'
}

type CompiledRule = Pick<RuleMatch, 'atSource' | 'atDestination'> & { held: HeldRule }

/**
 * Returns the lookups to use at each end. Only the VEN on the Windows destination knows which program uses a port. The
 * source cannot tell programs apart, so there a rule for another program may apply as well.
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
 * Makes IP lists consider all addresses of a member: a list covers it if it covers every address, and the answer is
 * undecided if it covers only some.
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
