import { isEssential } from '../inventory/protocols.js'
import type { PolicySnapshot, RuleKind } from '../policy/load-snapshot.js'
import { matchRules, type PolicyObjects, type RuleMatch } from '../policy/match-rules.js'
import { compileServices } from '../policy/match-services.js'
import { anyOf, both, isUnknown, not, unknown, type Answer } from '../policy/three-valued.js'
import type { EndMode, Member } from './find-members.js'
import { listRules, type HeldRule } from './place-rules.js'

/** What is asked about, beside the ends. `runs`: whether a program of a Windows service is the one asked about. */
export interface AskedService {
  port: number | null
  proto: number
  runs?: PolicyObjects['runs']
}

/** What becomes of a connection, from the mildest to the hardest. */
export const DECISIONS = ['allowed', 'potentially_blocked', 'blocked'] as const
export type Decision = (typeof DECISIONS)[number]

/** What settled it at one end: the first of these that says something, in this order (P50). */
export type Step = 'not_enforced' | 'override_deny' | 'allow' | 'deny' | 'default'

/** What one end does about a connection. */
export interface EndVerdict {
  mode: EndMode
  /** The outcomes that are possible; several where it is undecided. */
  possible: readonly Decision[]
  /** Null where it is undecided. */
  step: Step | null
  undecided: Answer
}

/** A rule that speaks about a connection, at the ends it is written to. */
export interface ApplyingRule {
  held: HeldRule
  atSource: Answer
  atDestination: Answer
}

export interface PairVerdict {
  decision: Decision | 'uncertain'
  possible: readonly Decision[]
  /** What was undecided, where the decision is uncertain. */
  undecided: Answer
  source: EndVerdict
  destination: EndVerdict
  /** In the order of the policy. */
  rules: readonly ApplyingRule[]
}

/** Judges connections of one kind by one version of the policy. */
export interface PairJudge {
  (source: Member, destination: Member): PairVerdict
  /** The same rules of the policy, of those that are switched off. */
  readonly off: (source: Member, destination: Member) => ApplyingRule[]
  readonly objects: PolicyObjects
  readonly rules: readonly HeldRule[]
}

/**
 * A judge by the rules of one version, with `more` rules beside them. What one end does follows from the order essential rules, override
 * deny, allow, deny, default of the mode; both ends have to let a connection pass (P50, P51). Rules of deny rules that could not be read
 * leave what they may decide undecided.
 */
export function createPairJudge(
  policy: PolicySnapshot,
  service: AskedService,
  more: readonly HeldRule[] = [],
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
      const says = (kind: RuleKind) => anyOf(rules.flatMap((one) => (one.held.kind === kind ? [one[end]] : [])))
      return judgeEnd(mode, {
        essential,
        overridden: anyOf([says('override_deny'), unread]),
        allowed: says('allow'),
        denied: anyOf([says('deny'), unread]),
      })
    }
    const [out, into] = [at('atSource', source), at('atDestination', destination)]
    const { decision, possible } = decide(out, into)
    const undecided =
      decision === 'uncertain' ? anyOf([out.undecided, into.undecided].filter(isUnknown)) : ('no' as const)
    return { decision, possible, undecided, source: out, destination: into, rules }
  }
  return Object.assign(judge, { off: compile(speaking.filter(({ off }) => off !== null)), objects, rules: all })
}

/** What becomes of a connection by what its two ends do: both have to let it pass. */
export function decide(source: EndVerdict, destination: EndVerdict): Pick<PairVerdict, 'decision' | 'possible'> {
  const possible = DECISIONS.filter((decision) =>
    source.possible.some((a) => destination.possible.some((b) => harder(a, b) === decision)),
  )
  const [only, ...others] = possible
  return { decision: only !== undefined && others.length === 0 ? only : 'uncertain', possible }
}

const harder = (a: Decision, b: Decision): Decision => (DECISIONS.indexOf(a) > DECISIONS.indexOf(b) ? a : b)

/** What the rules that are written to one end say of a connection. */
interface RulesAtEnd {
  essential: Answer
  overridden: Answer
  allowed: Answer
  denied: Answer
}

/** What an end in this mode does. One whose mode is not known does what it does in every mode, or is undecided. */
export function judgeEnd(mode: EndMode, rules: RulesAtEnd): EndVerdict {
  if (mode === 'none' || mode === 'idle') return { mode, possible: ['allowed'], step: 'not_enforced', undecided: 'no' }
  if (mode === 'unknown') {
    const each = (['idle', 'visibility_only', 'selective', 'full'] as const).map((one) => judgeEnd(one, rules))
    const possible = DECISIONS.filter((decision) => each.some((one) => one.possible.includes(decision)))
    if (possible.length === 1) return { mode, possible, step: each.at(-1)?.step ?? null, undecided: 'no' }
    return {
      mode,
      possible,
      step: null,
      undecided: anyOf([unknown('enforcement'), ...each.map((one) => one.undecided)]),
    }
  }
  const { essential, overridden, allowed, denied } = rules
  const byDefault: Answer = mode === 'selective' ? denied : 'yes'
  const dropped = both(anyOf([overridden, both(not(allowed), byDefault)]), not(essential))
  const loss: Decision = mode === 'visibility_only' ? 'potentially_blocked' : 'blocked'
  if (isUnknown(dropped)) return { mode, possible: ['allowed', loss], step: null, undecided: dropped }
  return { mode, possible: [dropped === 'yes' ? loss : 'allowed'], step: stepOf(dropped, rules), undecided: 'no' }
}

function stepOf(dropped: 'yes' | 'no', { overridden, allowed, denied }: RulesAtEnd): Step {
  if (dropped === 'no') return allowed === 'yes' ? 'allow' : 'default'
  if (overridden === 'yes') return 'override_deny'
  return denied === 'yes' ? 'deny' : 'default'
}

/** Whether a rule may be about the service: by its own services, or by those of a virtual service, which are not known here. */
function mayServe({ rule }: HeldRule, objects: PolicyObjects, { port, proto }: AskedService): boolean {
  const isVirtual =
    rule.resolve_labels_as?.providers.includes('virtual_services') === true ||
    rule.providers.some((actor) => actor.virtual_service !== undefined || actor.virtual_server !== undefined)
  return isVirtual || compileServices(rule.ingress_services, objects)(port, proto) !== 'no'
}

type CompiledRule = Pick<RuleMatch, 'atSource' | 'atDestination'> & { held: HeldRule }

/**
 * The program behind the port is known to a Windows host, and to the VEN there alone: the source cannot see that it is another one, so
 * there a rule for another program may apply all the same.
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

/** An IP list covers a member where it covers every address that it may use; undecided where only some. */
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
