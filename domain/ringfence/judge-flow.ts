import { isEssential } from '../inventory/protocols.js'
import { always, anyOf, both, isUnknown, not, settle, unknown, type Answer } from '../policy/three-valued.js'
import type { RuleAnswers, Versions } from './read-surroundings.js'

/**
 * What becomes of a flow once the ringfence is provisioned and the application's managed workloads are in the mode it is made
 * for: selective for a selective one, otherwise full; one that is in full stays there.
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

/** Enforcement mode of an end; `none` has no VEN of this PCE, so nothing is enforced there. */
export type EndMode = 'none' | 'idle' | 'visibility_only' | 'selective' | 'full' | 'unknown'

/** What is known of an observed inbound flow. */
export interface ObservedFlow {
  source: EndMode
  destination: EndMode
  port: number | null
  proto: number | null
  /** `policy_decision`, by the active policy. */
  decision: string
  /** `draft_policy_decision`, by the draft before the ringfence; null where the PCE gave none. */
  draft: string | null
  /** The draft has allow rules for it. */
  hasDraftRules: boolean
  /** It stays inside the application, so its source will be in another mode too. */
  isOwn: boolean
  /** What the rules say of it, the deny rule of the ringfence among them. */
  rules: RuleAnswers
}

export interface RingfenceAsked {
  selective: boolean
  /** Changes of others, or of the ringfence itself, are not provisioned: its draft is not what is in force. */
  hasPending: boolean
}

/** An effect, and what was undecided where it is possibly_cut. */
export interface FlowVerdict {
  effect: FlowEffect
  undecided: Answer
}

/** What the effect of a flow follows from. */
interface Facts {
  /** An override deny holds at an end that enforces. */
  overridden: Verdict
  /** An allow rule of the ringfence lets the source in, on every service. */
  covered: boolean
  /** The draft decision names an override deny at an end that enforces nothing. */
  onlySaid: boolean
  /** The active policy drops it today. */
  today: 'blocked' | 'passes'
  /** What the draft without the ringfence decides. */
  draft: 'blocked' | 'passes' | 'not given'
  pending: boolean
  /** The destination drops it: no allow rule lets it in, and the mode or a deny rule turns that into a loss. */
  destinationDrops: Verdict
  /** The source drops it: the ringfence's deny rule is written there too. */
  sourceDrops: Verdict
  /** The mode or a deny rule would drop it at the destination, were there no allow rule. */
  denied: Verdict
}
type Verdict = 'yes' | 'no' | 'unknown'

/** The first row whose conditions all hold decides; a condition that is not named does not matter. */
interface Row {
  when: Partial<Facts>
  effect: FlowEffect
  because: string
}

/** The decision table of a ringfence. */
export const DECISIONS: readonly Row[] = [
  {
    when: { overridden: 'yes' },
    effect: 'blocked_by_override_deny',
    because: 'an override deny beats every allow rule',
  },
  {
    when: { covered: true, overridden: 'unknown' },
    effect: 'possibly_cut',
    because: 'an override deny may beat the allow rule',
  },
  {
    when: { covered: true, onlySaid: true },
    effect: 'not_affected',
    because: 'nothing is enforced at the destination',
  },
  { when: { covered: true }, effect: 'allowed', because: 'the ringfence allows it' },
  { when: { today: 'blocked', draft: 'blocked' }, effect: 'cut', because: 'what is dropped today stays dropped' },
  {
    when: { today: 'blocked', draft: 'not given', pending: false },
    effect: 'cut',
    because: 'nothing is pending that could open it',
  },
  { when: { today: 'blocked' }, effect: 'possibly_cut', because: 'a pending change may open it' },
  { when: { destinationDrops: 'yes' }, effect: 'cut', because: 'no rule lets it in' },
  {
    when: { sourceDrops: 'yes' },
    effect: 'cut',
    because: 'no rule lets it out, and the deny rule is written to the source too',
  },
  { when: { destinationDrops: 'unknown' }, effect: 'possibly_cut', because: 'a rule may let it in' },
  { when: { sourceDrops: 'unknown' }, effect: 'possibly_cut', because: 'a rule may let it out' },
  { when: { overridden: 'unknown' }, effect: 'possibly_cut', because: 'an override deny may apply' },
  { when: { draft: 'blocked' }, effect: 'possibly_cut', because: 'pending changes may block it' },
  { when: { denied: 'no' }, effect: 'not_affected', because: 'nothing denies it' },
  { when: {}, effect: 'allowed_by_other_rules', because: 'a rule outside the ringfence allows it' },
]

/** `isCovered`: an allow rule of the ringfence lets the source in, on every service. */
export function judgeFlow(flow: ObservedFlow, isCovered: boolean, asked: RingfenceAsked): FlowVerdict {
  const overridden = isOverridden(flow, asked)
  const denied = isDenied(flow, asked.selective)
  const answers = {
    overridden,
    denied,
    // What is covered, or dropped today, is decided before these matter.
    destinationDrops: isCovered || denied === 'no' ? ('no' as const) : both(denied, not(isAllowedIn(flow, asked))),
    sourceDrops: isCovered ? ('no' as const) : doesSourceDrop(flow, asked),
  }
  const word = wordOf(flow.draft)
  const facts: Facts = {
    overridden: verdictOf(overridden),
    covered: isCovered,
    onlySaid: flow.destination === 'none' && saysOverride(flow.draft),
    today: flow.decision === 'blocked' ? 'blocked' : 'passes',
    draft: word === null ? 'not given' : word === 'blocked' ? 'blocked' : 'passes',
    pending: asked.hasPending,
    destinationDrops: verdictOf(answers.destinationDrops),
    sourceDrops: verdictOf(answers.sourceDrops),
    denied: verdictOf(denied),
  }
  const row = DECISIONS.find(({ when }) =>
    Object.entries(when).every(([fact, is]) => facts[fact as keyof Facts] === is),
  )
  const { effect } = row as Row
  return { effect, undecided: effect === 'possibly_cut' ? doubtOf((row as Row).when, answers) : 'no' }
}

const verdictOf = (answer: Answer): Verdict => (isUnknown(answer) ? 'unknown' : answer)

/** What the deciding row was undecided about; a row that names no answer waits for what is pending. */
function doubtOf(when: Partial<Facts>, answers: Partial<Record<keyof Facts, Answer>>): Answer {
  const named = Object.keys(when).map((fact) => answers[fact as keyof Facts] ?? 'no')
  const doubt = named.find(isUnknown)
  return doubt ?? unknown('pending')
}

/** Of one version of the policy: what a decision of the PCE tells, and what the rules say. */
type Told = readonly [seen: Answer, said: Answer]

/**
 * What holds in force and with everything pending provisioned, because nobody knows what else will be provisioned, and when. Where
 * nothing is pending, both decisions are about the same rules, and what either tells is known.
 */
const inBoth = ({ hasPending }: RingfenceAsked, active: Told, draft: Told): Answer =>
  hasPending ? always(settle(...active), settle(...draft)) : settle(settle(active[0], draft[0]), active[1])

/** Whether the mode or a deny rule drops at the destination what no allow rule lets in. */
function isDenied({ destination, draft, rules }: ObservedFlow, selective: boolean): Answer {
  if (destination === 'none') return 'no'
  const { own, active, draft: pending } = rules.atDestination('deny')
  const byRules = anyOf([own, always(active, pending)])
  // A deny rule decided it: at the source, or one that was not found.
  const denied = byRules === 'no' && draft?.endsWith('_by_boundary') === true ? unknown('unexplained') : byRules
  const target = destination === 'full' || !selective ? 'yes' : denied
  return destination === 'unknown' ? both(target, unknown('enforcement')) : target
}

/** Whether an allow rule other than the ringfence's new ones lets the flow in at its destination; such a rule beats the deny rule. */
function isAllowedIn(flow: ObservedFlow, asked: RingfenceAsked): Answer {
  const { own, active, draft } = flow.rules.atDestination('allow')
  if (own === 'yes') return 'yes'
  const essential = isEssential(flow) ? unknown('essential') : 'no'
  return inBoth(
    asked,
    [seenInForce(flow), anyOf([own, active, essential])],
    [seenInDraft(flow), anyOf([own, draft, essential])],
  )
}

/** What a decision tells about allow rules at the destination, by the mode of the destination. */
type Word = 'allowed' | 'not allowed' | 'by rules' | 'nothing'
const NOTHING = { allowed: 'nothing', potentially_blocked: 'nothing', blocked: 'nothing' } as const
const TOLD: Readonly<Record<EndMode, Readonly<Record<string, Word>>>> = {
  visibility_only: { allowed: 'allowed', potentially_blocked: 'not allowed', blocked: 'not allowed' },
  // It says allowed or blocked itself, so "potentially" is the word of the source.
  full: { allowed: 'allowed', potentially_blocked: 'allowed', blocked: 'not allowed' },
  // "Allowed" may mean only that no deny rule matches.
  selective: { allowed: 'by rules', potentially_blocked: 'not allowed', blocked: 'not allowed' },
  idle: NOTHING,
  none: NOTHING,
  unknown: NOTHING,
}

const HIDDEN = unknown('hidden')

/** What the active decision tells. It is the harder one of both ends. */
function seenInForce({ destination, source, decision, rules }: ObservedFlow): Answer {
  // An override deny beats every allow rule.
  const mayBeOverride =
    decision.endsWith('blocked') &&
    (rules.atDestination('override_deny').active !== 'no' || rules.atSource('override_deny').active !== 'no')
  if (mayBeOverride) return HIDDEN
  return readTold(decision, destination, source, rules, HIDDEN)
}

/** What the draft decision tells; nothing where the PCE gave none. */
function seenInDraft(flow: ObservedFlow): Answer {
  const { destination, source, draft, hasDraftRules, rules } = flow
  const word = wordOf(draft)
  // An idle end has no decision of its own, so the word is the source's unless nobody judges there. Alone it is judged as if in
  // visibility_only.
  if (word === null || saysOverride(draft) || (destination === 'idle' && source !== 'none')) return HIDDEN
  const mayBeOfSource = hasDraftRules && source !== 'none' && rules.toAddress() !== 'no'
  const byRules = hasDraftRules && !mayBeOfSource ? 'yes' : hasDraftRules || isEssential(flow) ? HIDDEN : 'no'
  const awake = (mode: EndMode) => (mode === 'idle' ? 'visibility_only' : mode)
  return readTold(word, awake(destination), awake(source), rules, byRules)
}

/**
 * `byRules`: whether "allowed" in selective mode comes from a rule. Only a rule that names the source by its address can let a flow
 * in at the destination while the source has none and says so.
 */
function readTold(
  decision: string,
  destination: EndMode,
  source: EndMode,
  { byAddress }: Pick<RuleAnswers, 'byAddress'>,
  byRules: Answer,
): Answer {
  const told = TOLD[destination][decision] ?? (TOLD[destination] === NOTHING ? 'nothing' : 'not allowed')
  if (told === 'allowed') return 'yes'
  if (told === 'by rules') return byRules
  if (told === 'nothing') return HIDDEN
  const mayBeOfSource =
    source === 'unknown' || (decision === 'blocked' ? isEnforcing(source) : source === 'visibility_only')
  return mayBeOfSource && byAddress() !== 'no' ? HIDDEN : 'no'
}

/**
 * Whether the source drops it. A deny rule from all workloads is written to every managed source, which then drops what it enforces
 * (P51). In full mode, what goes out today has a rule that lets it out, and that beats a deny rule.
 */
function doesSourceDrop(flow: ObservedFlow, asked: RingfenceAsked): Answer {
  const { source, draft: said, hasDraftRules, rules } = flow
  if (said === null && (isEnforcing(source) || source === 'unknown') && changesAtSource(rules))
    return unknown('pending')
  if (source !== 'selective' && source !== 'unknown') return 'no'
  const denied = rules.atSource('deny').own
  if (denied === 'no') return 'no'
  const { own, active, draft } = rules.atSource('allow')
  const essential = isEssential(flow) ? unknown('essential') : 'no'
  // In selective mode "allowed" may mean only that no deny rule matches, so the active decision tells nothing here.
  const isByDefault = source === 'selective' && wordOf(said) === 'allowed' && !hasDraftRules && !isEssential(flow)
  const byWord = isByDefault ? 'no' : HIDDEN
  const allowed = inBoth(asked, [HIDDEN, anyOf([own, active, essential])], [byWord, anyOf([own, draft, essential])])
  const drops = both(denied, not(allowed))
  return source === 'unknown' ? both(drops, unknown('enforcement')) : drops
}

/** Whether pending changes may make a difference at the source; a draft decision would tell. */
const changesAtSource = ({ atSource }: RuleAnswers): boolean =>
  (['allow', 'deny'] as const).some((kind) => atSource(kind).active !== atSource(kind).draft)

/**
 * Whether an override deny holds once the ends are in their new modes: at the destination, or written to a source that enforces.
 * The harder decision of the two ends hides the reason of the other, so the rules are asked too; where they and the PCE disagree,
 * or the draft and what is in force, it is undecided.
 */
function isOverridden(flow: ObservedFlow, asked: RingfenceAsked): Answer {
  const { destination, source, rules } = flow
  const ends = [
    ...(destination === 'none' ? [] : [{ mode: destination, says: rules.atDestination('override_deny') }]),
    ...(willSourceEnforce(flow) ? [{ mode: source, says: rules.atSource('override_deny') }] : []),
  ].map(({ mode, says }) => (mode === 'unknown' ? weaken(says) : says))
  if (ends.length === 0) return 'no'
  // What VENs keep open comes before every rule (P50).
  const counts = isEssential(flow) ? unknown('essential') : 'yes'
  const says = (version: keyof Versions) => both(anyOf(ends.map((end) => end[version])), counts)
  return anyOf([
    says('own'),
    inBoth(asked, [activeSaysOverride(flow), says('active')], [draftSaysOverride(flow), says('draft')]),
  ])
}

/** Of an end whose mode is not known. */
const weaken = ({ own, active, draft }: Versions): Versions => {
  const [a, b, c] = [own, active, draft].map((answer) => both(answer, unknown('enforcement')))
  return { own: a as Answer, active: b as Answer, draft: c as Answer }
}

/** A source of the application itself changes its mode with it. */
const willSourceEnforce = ({ source, isOwn }: ObservedFlow) =>
  source !== 'none' && (isOwn || isEnforcing(source) || source === 'unknown')

/** What the active decision tells about override denies: no, where every end that counts lets it pass and says so. */
function activeSaysOverride(flow: ObservedFlow): Answer {
  const { destination, source, decision } = flow
  const passes = (mode: EndMode) =>
    mode !== 'idle' &&
    mode !== 'unknown' &&
    (decision === 'allowed' || (isEnforcing(mode) && decision === 'potentially_blocked'))
  const isClear = (destination === 'none' || passes(destination)) && (!willSourceEnforce(flow) || passes(source))
  return isClear ? 'no' : HIDDEN
}

/** What the draft decision tells about them. */
function draftSaysOverride(flow: ObservedFlow): Answer {
  const { destination, source, draft } = flow
  // What is only potentially blocked may be said by a source that will not enforce it.
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
const isEnforcing = (mode: EndMode) => mode === 'selective' || mode === 'full'

/** A draft decision in the words of `policy_decision`. */
function wordOf(draft: string | null): string | null {
  if (draft === null) return null
  return ['potentially_blocked', 'blocked', 'allowed'].find((word) => draft.startsWith(word)) ?? null
}
