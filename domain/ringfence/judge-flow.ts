import { isEnforcing, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import { readDecision, type JudgedDecision } from '../../schemas/pce/policy-decisions.js'
import { isEssential } from '../inventory/protocols.js'
import { always, anyOf, both, isUnknown, not, settle, unknown, type Answer } from '../policy/three-valued.js'
import { reportsWithoutRule, stops } from '../policy/mode-effects.js'
import type { RuleAnswers, Versions } from './read-surroundings.js'

/**
 * The possible effects of a ringfence on a flow, once the ringfence is provisioned and the application's managed
 * workloads are in their intended mode: selective for a selective ringfence, otherwise full. A workload that is already
 * in full mode stays in it.
 */
export const FLOW_EFFECTS = [
  'allowed',
  'allowed_by_other_rules',
  'not_affected',
  'possibly_cut',
  'cut',
  'blocked_by_override_deny',
] as const
export type FlowEffect = (typeof FLOW_EFFECTS)[number]

/** An observed inbound flow and what is known about it. */
export interface ObservedFlow {
  source: EndMode
  destination: EndMode
  port: number | null
  proto: number | null
  /**
   * Whether the source or the destination drops the flow today, according to the active policy and the current modes.
   */
  today: Answer
  /**
   * What the draft decides without the ringfence, from the PCE's `draft_policy_decision`; null if the PCE reports
   * nothing.
   */
  draft: string | null
  /** True if the draft contains allow rules for the flow. */
  hasDraftRules: boolean
  /** True if the flow stays inside the application, so that the mode of its source will change too. */
  isOwn: boolean
  /** The results of matching the rules against the flow. The rules include the deny rule of the ringfence. */
  rules: RuleAnswers
}

export interface RingfenceAsked {
  selective: boolean
  /**
   * True if the draft differs from the active policy because of pending changes, by others or of the ringfence itself.
   */
  hasPending: boolean
}

/** The effect of a ringfence on a flow. If the effect is possibly_cut, the reason for the doubt is included. */
export interface FlowVerdict {
  effect: FlowEffect
  undecided: Answer
}

/** The facts that determine the effect of the ringfence on a flow. */
interface Facts {
  /** Whether an override deny rule applies to the flow at an end that enforces policy. */
  overridden: Verdict
  /** Whether an allow rule of the ringfence lets the flow's source reach the application on every service. */
  covered: Verdict
  /**
   * True if the draft decision names an override deny rule although the destination enforces nothing, because it has no
   * VEN of this PCE.
   */
  onlySaid: boolean
  /** Whether the active policy drops the flow today, whatever decision the PCE recorded. */
  today: 'blocked' | 'passes' | 'unknown'
  /** What the draft decides about the flow without the ringfence. */
  draft: 'blocked' | 'passes' | 'not given'
  pending: boolean
  /**
   * Whether the destination drops the flow: no allow rule lets it in, and a deny rule or the destination's mode blocks
   * it.
   */
  destinationDrops: Verdict
  /**
   * Whether the source drops the flow. It may do so because rules are sent to sources too, and because the mode of a
   * source inside the application will change.
   */
  sourceDrops: Verdict
  /** Whether a deny rule or the destination's mode would drop the flow there if no allow rule let it in. */
  denied: Verdict
  /**
   * Whether iptables rules, whose effect is not known, may decide about the flow: today at either end, or later at an
   * end inside the application.
   */
  bypassed: Verdict
}
type Verdict = 'yes' | 'no' | 'unknown'

/**
 * A row of the decision table. The first row whose conditions are all met determines the effect. Facts that are missing
 * in `when` are ignored.
 */
interface Row {
  when: Partial<Facts>
  effect: FlowEffect
  because: string
}

/** The decision table, by which the facts about a flow determine the effect of a ringfence. */
export const DECISIONS: readonly Row[] = [
  {
    when: { bypassed: 'unknown', today: 'passes' },
    effect: 'possibly_cut',
    because: 'a rule in the words of iptables may come first',
  },
  {
    when: { bypassed: 'unknown', today: 'unknown' },
    effect: 'possibly_cut',
    because: 'a rule in the words of iptables may come first, today already',
  },
  {
    when: { overridden: 'yes' },
    effect: 'blocked_by_override_deny',
    because: 'an override deny beats every allow rule',
  },
  {
    when: { bypassed: 'unknown', covered: 'yes' },
    effect: 'possibly_cut',
    because: 'a rule in the words of iptables may come before the allow rule',
  },
  {
    when: { covered: 'yes', overridden: 'unknown' },
    effect: 'possibly_cut',
    because: 'an override deny may beat the allow rule',
  },
  {
    when: { covered: 'yes', onlySaid: true },
    effect: 'not_affected',
    because: 'nothing is enforced at the destination',
  },
  { when: { covered: 'yes' }, effect: 'allowed', because: 'the ringfence allows it' },
  {
    when: { covered: 'unknown', today: 'blocked' },
    effect: 'possibly_cut',
    because: 'the allow rule may not reach an end off the corporate network',
  },
  { when: { today: 'blocked', draft: 'blocked' }, effect: 'cut', because: 'what is dropped today stays dropped' },
  {
    when: { today: 'blocked', draft: 'not given', pending: false },
    effect: 'cut',
    because: 'nothing is pending that could open it',
  },
  { when: { today: 'blocked' }, effect: 'possibly_cut', because: 'a pending change may open it' },
  { when: { destinationDrops: 'yes' }, effect: 'cut', because: 'no rule lets it in' },
  { when: { destinationDrops: 'unknown' }, effect: 'possibly_cut', because: 'a rule may let it in' },
  { when: { sourceDrops: 'yes' }, effect: 'cut', because: 'no rule lets it out' },
  { when: { sourceDrops: 'unknown' }, effect: 'possibly_cut', because: 'a rule may let it out' },
  { when: { overridden: 'unknown' }, effect: 'possibly_cut', because: 'an override deny may apply' },
  { when: { draft: 'blocked' }, effect: 'possibly_cut', because: 'pending changes may block it' },
  { when: { today: 'unknown' }, effect: 'possibly_cut', because: 'it may be dropped today already' },
  { when: { denied: 'no' }, effect: 'not_affected', because: 'nothing denies it' },
  { when: {}, effect: 'allowed_by_other_rules', because: 'a rule outside the ringfence allows it' },
]

/**
 * Determines the effect of a ringfence on a flow. `covered` says whether an allow rule of the ringfence lets the source
 * reach the application on every service.
 */
export function judgeFlow(flow: ObservedFlow, covered: Answer, asked: RingfenceAsked): FlowVerdict {
  const overridden = isOverridden(flow, asked)
  const denied = isDenied(flow, asked.selective)
  const isCovered = covered === 'yes'
  const isLetIn = () => anyOf([covered, isAllowedIn(flow, asked)])
  const answers = {
    overridden,
    covered,
    denied,
    bypassed: isBypassed(flow),
    // If a flow is covered or is dropped today, an earlier row of the table decides, so the next two answers do not
    // matter.
    destinationDrops: isCovered || denied === 'no' ? ('no' as const) : both(denied, not(isLetIn())),
    sourceDrops: isCovered ? ('no' as const) : doesSourceDrop(flow, covered, asked),
    today: flow.today,
  }
  const word = wordOf(flow.draft)
  const facts: Facts = {
    overridden: verdictOf(overridden),
    covered: verdictOf(covered),
    onlySaid: flow.destination === 'none' && saysOverride(flow.draft),
    today: isUnknown(flow.today) ? 'unknown' : flow.today === 'yes' ? 'blocked' : 'passes',
    draft: word === null ? 'not given' : word === 'blocked' ? 'blocked' : 'passes',
    pending: asked.hasPending,
    destinationDrops: verdictOf(answers.destinationDrops),
    sourceDrops: verdictOf(answers.sourceDrops),
    denied: verdictOf(denied),
    bypassed: verdictOf(answers.bypassed),
  }
  const row = DECISIONS.find(({ when }) =>
    Object.entries(when).every(([fact, is]) => facts[fact as keyof Facts] === is),
  )
  const { effect } = row as Row
  return { effect, undecided: effect === 'possibly_cut' ? doubtOf((row as Row).when, answers, asked) : 'no' }
}

const verdictOf = (answer: Answer): Verdict => (isUnknown(answer) ? 'unknown' : answer)

/**
 * Returns the reason for the doubt about an effect: that of the first undecided fact in the row that determined the
 * effect. If the row has none, the reason is pending changes or, if nothing is pending, a contradiction between the
 * rules and the draft decision.
 */
function doubtOf(
  when: Partial<Facts>,
  answers: Partial<Record<keyof Facts, Answer>>,
  { hasPending }: RingfenceAsked,
): Answer {
  const named = Object.keys(when).map((fact) => answers[fact as keyof Facts] ?? 'no')
  const doubt = named.find(isUnknown)
  return doubt ?? unknown(hasPending ? 'pending' : 'contradiction')
}

/** Two answers about the draft: one from the PCE's draft decision, and one from the draft's rules. */
type Told = readonly [seen: Answer, said: Answer]

/**
 * Returns an answer that holds both now and after pending changes are provisioned, because nobody knows which of them
 * will be provisioned, or when. If nothing is pending, the active policy and the draft have the same rules. The
 * decision that the PCE recorded is not used, because rules and modes may have changed since.
 */
const inBoth = ({ hasPending }: RingfenceAsked, active: Answer, draft: Told): Answer =>
  hasPending ? always(active, settle(...draft)) : settle(draft[0], active)

/**
 * Returns whether traffic that no allow rule lets in is dropped at the destination, by a deny rule or the destination's
 * mode.
 */
function isDenied({ destination, draft, rules }: ObservedFlow, selective: boolean): Answer {
  if (destination === 'none') return 'no'
  const { own, active, draft: pending } = rules.atDestination('deny')
  const byRules = anyOf([own, always(active, pending)])
  // The draft decision names a deny rule, but none was found for the destination. It may apply at the source, or was
  // not read.
  const denied = byRules === 'no' && draft?.endsWith('_by_boundary') === true ? unknown('unexplained') : byRules
  const target = destination === 'full' || !selective ? 'yes' : denied
  return destination === 'unknown' ? both(target, unknown('enforcement')) : target
}

/**
 * Returns whether an allow rule, other than the ringfence's new ones, lets the flow in at its destination. Such a rule
 * takes precedence over the ringfence's deny rule.
 */
function isAllowedIn(flow: ObservedFlow, asked: RingfenceAsked): Answer {
  const { own, active, draft } = flow.rules.atDestination('allow')
  if (own === 'yes') return 'yes'
  const essential = isEssential(flow) ? unknown('essential') : 'no'
  return inBoth(asked, anyOf([own, active, essential]), [seenInDraft(flow), anyOf([own, draft, essential])])
}

/**
 * Returns whether iptables rules may decide about the flow: today at either end, or later at the destination or at a
 * source inside the application.
 */
const isBypassed = ({ source, destination, today, isOwn, rules }: ObservedFlow): Answer =>
  anyOf([
    destination !== 'none' ? rules.mayBypass('dst') : 'no',
    isOwn && source !== 'none' ? rules.mayBypass('src') : 'no',
    isUnknown(today) && today.unknown.includes('iptables') ? today : 'no',
  ])

/** What a draft decision reveals about allow rules at the destination. This depends on the destination's mode. */
type Word = 'allowed' | 'not allowed' | 'by rules' | 'nothing'
type WordByDecision = Readonly<Record<JudgedDecision, Word>>
const NOTHING: WordByDecision = { allowed: 'nothing', potentially_blocked: 'nothing', blocked: 'nothing' }
const TOLD: Readonly<Record<EndMode, WordByDecision>> = {
  visibility_only: { allowed: 'allowed', potentially_blocked: 'not allowed', blocked: 'not allowed' },
  // In full mode the destination itself decides "allowed" or "blocked", so "potentially blocked" must be the source's
  // decision.
  full: { allowed: 'allowed', potentially_blocked: 'allowed', blocked: 'not allowed' },
  // In selective mode, "allowed" may mean only that no deny rule matched.
  selective: { allowed: 'by rules', potentially_blocked: 'not allowed', blocked: 'not allowed' },
  idle: NOTHING,
  none: NOTHING,
  unknown: NOTHING,
}

const HIDDEN = unknown('hidden')

/** Returns what the draft decision reveals about allow rules at the destination; `HIDDEN` if it reveals nothing. */
function seenInDraft(flow: ObservedFlow): Answer {
  const { destination, source, draft, hasDraftRules, rules } = flow
  const word = wordOf(draft)
  // An idle destination makes no decision, so the reported one is that of the source, if the source has a VEN. If only
  // the idle end has a VEN, it is treated like one in visibility_only mode.
  if (word === null || saysOverride(draft) || (destination === 'idle' && source !== 'none')) return HIDDEN
  const mayBeOfSource = hasDraftRules && source !== 'none' && rules.toAddress() !== 'no'
  const byRules = hasDraftRules && !mayBeOfSource ? 'yes' : hasDraftRules || isEssential(flow) ? HIDDEN : 'no'
  const awake = (mode: EndMode) => (mode === 'idle' ? 'visibility_only' : mode)
  return readTold(word, awake(destination), awake(source), rules, byRules)
}

/**
 * Returns whether an allow rule lets the flow in at the destination, as far as a draft decision of the PCE shows it.
 * `byRules` is the answer for "allowed" in selective mode. If the source has no rule for a flow, the destination can
 * let it in only by a rule that names the source by address.
 */
function readTold(
  decision: string,
  destination: EndMode,
  source: EndMode,
  { byAddress }: Pick<RuleAnswers, 'byAddress'>,
  byRules: Answer,
): Answer {
  const words: Readonly<Record<string, Word | undefined>> = TOLD[destination]
  const told = words[decision] ?? (TOLD[destination] === NOTHING ? 'nothing' : 'not allowed')
  if (told === 'allowed') return 'yes'
  if (told === 'by rules') return byRules
  if (told === 'nothing') return HIDDEN
  const mayBeOfSource =
    source === 'unknown' || (decision === 'blocked' ? isEnforcing(source) : reportsWithoutRule(source))
  return mayBeOfSource && byAddress() !== 'no' ? HIDDEN : 'no'
}

/**
 * Returns the mode of the source once the application is in its intended mode. The mode of a source inside the
 * application changes too.
 */
const modeOfSource = ({ source, isOwn }: ObservedFlow, { selective }: RingfenceAsked): EndMode =>
  !isOwn || source === 'none' || source === 'full' ? source : selective ? 'selective' : 'full'

/**
 * Returns whether the source drops the flow in its future mode (see `modeOfSource`). A deny rule that applies to all
 * workloads is also sent to every managed source. Whether a source in selective mode enforces it is not certain (P51).
 */
function doesSourceDrop(flow: ObservedFlow, covered: Answer, asked: RingfenceAsked): Answer {
  const { draft: said, hasDraftRules, rules } = flow
  const source = modeOfSource(flow, asked)
  if (!isEnforcing(source) && source !== 'unknown') return 'no'
  if (said === null && changesAtSource(rules)) return unknown('pending')
  const denies = rules.atSource('deny')
  const denied = source === 'selective' ? anyOf([denies.own, always(denies.active, denies.draft)]) : 'yes'
  if (denied === 'no') return 'no'
  const { own, active, draft } = rules.atSource('allow')
  const essential = isEssential(flow) ? unknown('essential') : 'no'
  const isByDefault = source === 'selective' && wordOf(said) === 'allowed' && !hasDraftRules && !isEssential(flow)
  const byWord = isByDefault ? 'no' : HIDDEN
  const allowed = inBoth(asked, anyOf([own, active, essential]), [byWord, anyOf([own, draft, essential])])
  return both(
    both(denied, not(anyOf([covered, allowed]))),
    stops(source, 'outbound', source === 'selective' ? 'deny' : 'default'),
  )
}

/**
 * Returns true if pending changes may change the decision at the source. This matters only if the PCE reports no draft
 * decision, which would take them into account.
 */
const changesAtSource = ({ atSource }: RuleAnswers): boolean =>
  (['allow', 'deny'] as const).some((kind) => atSource(kind).active !== atSource(kind).draft)

/**
 * Returns whether an override deny rule applies at the destination, or at a source that enforces policy, once both are
 * in their new modes. The PCE reports only the stricter of the two ends' decisions, and so hides the reason for the
 * other one. Therefore the rules are evaluated too. The answer is undecided if the rules contradict the PCE's report,
 * or if draft and active policy differ.
 */
function isOverridden(flow: ObservedFlow, asked: RingfenceAsked): Answer {
  const { destination, source, rules } = flow
  const ends = [
    ...(destination === 'none' ? [] : [{ mode: destination, says: rules.atDestination('override_deny') }]),
    ...(willSourceEnforce(flow) ? [{ mode: source, says: outgoing(flow, asked) }] : []),
  ].map(({ mode, says }) => (mode === 'unknown' ? weaken(says, unknown('enforcement')) : says))
  if (ends.length === 0) return 'no'
  // Traffic that VENs always allow takes precedence over every rule (P50).
  const counts = isEssential(flow) ? unknown('essential') : 'yes'
  const says = (version: keyof Versions) => both(anyOf(ends.map((end) => end[version])), counts)
  return anyOf([says('own'), inBoth(asked, says('active'), [draftSaysOverride(flow), says('draft')])])
}

/** Returns whether override deny rules drop the flow at the source, in its future mode (see `modeOfSource`). */
function outgoing(flow: ObservedFlow, asked: RingfenceAsked): Versions {
  const says = flow.rules.atSource('override_deny')
  const mode = modeOfSource(flow, asked)
  return mode === 'unknown' ? says : weaken(says, stops(mode, 'outbound', 'override_deny'))
}

/** Combines each of the three answers with the given doubt by AND. */
const weaken = ({ own, active, draft }: Versions, doubt: Answer): Versions => {
  const [a, b, c] = [own, active, draft].map((answer) => both(answer, doubt))
  return { own: a as Answer, active: b as Answer, draft: c as Answer }
}

/**
 * Returns true if the source will, or may, enforce policy once the application is in its intended mode. The mode of a
 * source inside the application changes too.
 */
const willSourceEnforce = ({ source, isOwn }: ObservedFlow) =>
  source !== 'none' && (isOwn || isEnforcing(source) || source === 'unknown')

/** Returns whether the draft decision proves that an override deny rule applies. */
function draftSaysOverride(flow: ObservedFlow): Answer {
  const { destination, source, draft } = flow
  // "Potentially blocked" may be the decision of a source that will not enforce an override deny rule.
  const isOfSource = draft?.startsWith('potentially') === true && source !== 'none' && !willSourceEnforce(flow)
  if (saysOverride(draft)) return isOfSource ? HIDDEN : 'yes'
  const isSilent = (mode: EndMode, other: EndMode) =>
    (mode === 'idle' && other !== 'none') ||
    (mode === 'visibility_only' && wordOf(draft) === 'blocked') ||
    mode === 'unknown'
  const isHidden = isSilent(destination, source) || (willSourceEnforce(flow) && isSilent(source, destination))
  return draft === null || isHidden ? HIDDEN : 'no'
}

const saysOverride = (draft: string | null) => draft?.endsWith('override_deny') === true

/** Converts a draft decision to a value of `policy_decision`; returns null if the PCE did not decide. */
function wordOf(draft: string | null): JudgedDecision | null {
  const word = readDecision(draft)
  return word === 'unknown' ? null : word
}
