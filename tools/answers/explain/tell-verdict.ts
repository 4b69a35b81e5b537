import type { JudgedDecision } from '../../../schemas/pce/policy-decisions.js'
import type { Member } from '../../../domain/explain/find-members.js'
import type { FlowVerdict, JudgedPair } from '../../../domain/explain/judge-members.js'
import type { ApplyingRule, PairVerdict } from '../../../domain/explain/judge-pair.js'
import type { Stranger } from '../../../domain/explain/observe-flow.js'
import type { JudgedFlow } from '../../../domain/explain/prepare-flow.js'
import { listIpTables } from '../../../domain/explain/read-versions.js'
import type { Version } from '../../../domain/inventory/find-object.js'
import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'
import type { EndVerdict } from '../../../domain/policy/judge-end.js'
import type { RuleType } from '../../../domain/policy/rule-type.js'
import { passesByDefault } from '../../../domain/policy/mode-effects.js'
import { nameRuleIn } from '../../../domain/policy/name-rule.js'
import type { AnyRule } from '../../../domain/policy/rule-in-force.js'
import { describeReasons, isUnknown, type Answer } from '../../../domain/policy/three-valued.js'
import { tellMany } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'

/** The verdict on a flow in one version of the policy: a word, and a sentence with the reason. */
export interface ToldVerdict {
  verdict: JudgedDecision | 'uncertain' | 'split'
  why: string
}

/**
 * The verdicts of both policy versions. If they are the same, `isSame` is true and the draft's sentence says only that.
 */
export interface ToldVerdicts extends Record<Version, ToldVerdict> {
  isSame: boolean
}

/** The names of the types of rules in sentences. */
export const KIND_WORDS: Record<RuleType, string> = {
  allow: 'allow rule',
  deny: 'deny rule',
  override_deny: 'override deny rule',
}

/** Describes the verdicts of both policy versions. If they are the same, the draft's sentence says only that. */
export function tellVerdicts(verdict: FlowVerdict, isPending: boolean, names: ReferenceNames): ToldVerdicts {
  const active = tellVersion('active', verdict, names)
  const draft = tellVersion('draft', verdict, names)
  const isSame = draft.verdict === active.verdict && draft.why === active.why
  const same = isPending ? 'The same: nothing that is pending changes it.' : 'The same: nothing is pending.'
  return { active, draft: isSame ? { ...draft, why: same } : draft, isSame }
}

/**
 * Makes the verdicts uncertain if no known workload has an address in the question, but observed traffic names a
 * workload there. This workload's labels and mode, which are not known, would determine the decision.
 */
export function doubtStrangers(
  told: Record<Version, ToldVerdict>,
  strangers: readonly Stranger[],
): Record<Version, ToldVerdict> {
  if (strangers.length === 0) return told
  const named = strangers.map(({ address, name, mode }) => `${address} as ${quote(name)} (${mode ?? 'mode unknown'})`)
  const why = `The traffic that was seen names ${named.join(' and ')}, but no list has a workload there, so what it enforces today is not known.`
  return { active: { verdict: 'uncertain', why }, draft: { verdict: 'uncertain', why: 'For the same reason.' } }
}

/**
 * Describes the verdict of one policy version. If pairs of source and destination have different verdicts, the number
 * of pairs is given for each verdict.
 */
function tellVersion(
  version: Version,
  { outcomes, judged, pairs, isPartial }: FlowVerdict,
  names: ReferenceNames,
): ToldVerdict {
  const counts = new Map<PairVerdict['decision'], number>()
  for (const outcome of outcomes) {
    const { decision } = outcome[version]
    counts.set(decision, (counts.get(decision) ?? 0) + outcome.pairs)
  }
  const [only] = counts.keys()
  const [first] = outcomes
  const pair = first?.examples[0]
  if (counts.size !== 1 || only === undefined || pair === undefined) {
    const told = [...counts].sort(([, a], [, b]) => b - a).map(([decision, count]) => `${tellMany(count)} ${decision}`)
    const of = judged === pairs ? `${tellMany(pairs)} pairs` : `${tellMany(judged)} judged pairs of ${tellMany(pairs)}`
    return { verdict: 'split', why: `Of ${of}: ${told.join(', ')}.` }
  }
  const why = tellPair(version, pair, names)
  if (pairs === 1) return { verdict: only, why }
  const all =
    judged === pairs ? `All ${tellMany(pairs)} pairs` : `All ${tellMany(judged)} judged pairs of ${tellMany(pairs)}`
  // Pairs that were not evaluated may have a different verdict.
  if (isPartial) {
    const example = `${quote(pair.source.name)} to ${quote(pair.destination.name)}, for example: ${why}`
    return { verdict: 'uncertain', why: `${all} are ${only}, the others were not judged; ${example}` }
  }
  return {
    verdict: only,
    why: `${all}; ${quote(pair.source.name)} to ${quote(pair.destination.name)}, for example: ${why}`,
  }
}

/** Returns a sentence with the reason for the decision on one pair of source and destination. */
export function tellPair(version: Version, pair: JudgedPair, names: ReferenceNames): string {
  const { decision, possible, undecided, source, destination, rules } = pair[version]
  if (decision === 'uncertain')
    return `${possible.join(' or ')}: ${isUnknown(undecided) ? describeReasons(undecided.unknown) : 'undecided'} decide.`
  const ends = [
    { at: 'atSource' as const, member: pair.source, verdict: source },
    { at: 'atDestination' as const, member: pair.destination, verdict: destination },
  ]
  const telling = ends.filter(({ verdict }) =>
    decision === 'allowed' ? verdict.step !== 'not_enforced' : verdict.possible[0] === decision,
  )
  if (telling.length === 0)
    return `Neither end enforces policy: ${ends.map(({ member }) => describeEnd(member)).join(', ')}.`
  const causes = telling.map(({ at, member, verdict }) => ({
    who: describeEnd(member),
    cause: causeOf(verdict, at, rules, names),
  }))
  const [one, other] = causes as [(typeof causes)[number], (typeof causes)[number]?]
  const who = other !== undefined && one.cause === other.cause ? `${one.who} and ${other.who}` : one.who
  const also =
    other === undefined || one.cause === other.cause ? '' : `; ${tellCause(decision, other.who, other.cause)}`
  return `${tellCause(decision, who, one.cause)}${also}.`
}

const CAUSES: Readonly<Record<JudgedDecision, (who: string) => string>> = {
  allowed: (who) => `let through by ${who}`,
  potentially_blocked: (who) => `passes for now; ${who} would drop it once enforcing`,
  blocked: (who) => `dropped by ${who}`,
}

function tellCause(decision: JudgedDecision, who: string, cause: string): string {
  return `${CAUSES[decision](who)}: ${cause}`
}

function causeOf(
  { step, mode }: EndVerdict,
  at: 'atSource' | 'atDestination',
  rules: readonly ApplyingRule[],
  names: ReferenceNames,
): string {
  if (step === null || step === 'not_enforced') return 'undecided'
  if (step === 'default')
    return passesByDefault(mode) ? `no rule is about it, so ${mode} mode lets it pass for now` : 'no rule allows it'
  const found = rules.filter((rule) => rule.held.kind === step && rule[at] === 'yes')
  const [first] = found
  const rest = found.length > 1 ? ` and ${found.length - 1} more` : ''
  const name = first === undefined ? '' : ` ${describeRule(first, names)}`
  return `${KIND_WORDS[step]}${name}${rest}${step === 'override_deny' ? ', which beats every allow rule' : ''}`
}

/** Describes a rule with its rule set, such as `"role=web to role=db, 5432/tcp" in "payments | prod"`. */
export function describeRule({ held }: Pick<ApplyingRule, 'held'>, names: ReferenceNames): string {
  return nameRuleIn(held.source as AnyRule, held.ruleSet?.name ?? null, names)
}

const describeEnd = ({ name, mode }: Member) => `${quote(name)} (${mode === 'none' ? 'no VEN' : mode})`

/** Describes in a sentence what one end (`side`) does with the connection, by the active policy and by the draft. */
export function tellEnd(side: 'source' | 'destination', { active, draft, [side]: member }: JudgedPair): string {
  const direction = side === 'source' ? 'outbound' : 'inbound'
  if (member.mode === 'none') return 'No VEN: it enforces nothing.'
  if (member.mode === 'idle') return 'idle: its VEN enforces nothing.'
  const [now, later] = [doesOf(active[side]), doesOf(draft[side])]
  const draftNote = now === later ? '' : `; by the draft it ${later}`
  const offline = member.isOffline ? ' It is offline, so the PCE leaves its addresses out of the policy of others.' : ''
  return `${member.mode}, ${direction}: it ${now}${draftNote}.${offline}`
}

const BECAUSE: Record<NonNullable<EndVerdict['step']>, string> = {
  not_enforced: 'nothing is enforced',
  override_deny: 'an override deny',
  allow: 'an allow rule',
  deny: 'a deny rule and no allow rule',
  default: 'no rule',
}

function doesOf({ possible, step }: EndVerdict): string {
  if (step === null) return `may have it ${possible.join(' or ')}`
  const [only] = possible
  const does = only === 'blocked' ? 'drops it' : only === 'allowed' ? 'lets it through' : 'would drop it once enforcing'
  return `${does} (${BECAUSE[step]})`
}

/** Returns a sentence that names the rule sets with iptables rules for an end of the flow; empty if there are none. */
export function tellIpTablesAt({ versions, sources, destinations }: JudgedFlow): string[] {
  const [first, ...others] = listIpTables(versions, [...sources.members, ...destinations.members])
  if (first === undefined) return []
  const more = others.length > 2 ? ` and ${others.length - 2} more rule sets` : ''
  return [
    `Rules in the words of iptables, which can allow or block anything at these ends, are not judged: ${[first, ...others.slice(0, 2)].map(quote).join(', ')}${more}.`,
  ]
}

/** Returns one string with the reasons why some of these answers are unknown; undefined if none is. */
export const reasonsOf = (...answers: readonly Answer[]): string | undefined => {
  const reasons = answers.flatMap((answer) => (isUnknown(answer) ? answer.unknown : []))
  return reasons.length === 0 ? undefined : describeReasons([...new Set(reasons)])
}
