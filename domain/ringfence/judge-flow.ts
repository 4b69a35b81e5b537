import { anyOf, both, not, settle, type Answer } from '../policy/answers.js'
import type { AddressRules, DenyReach, EndMode, RingfenceReach, OtherAnswers } from './reach.js'

/**
 * What becomes of a flow once the ringfence is provisioned and the application's managed workloads are in the mode it is made
 * for: selective for a selective one, else full; one that is in full stays there.
 */
export const EFFECTS = [
  'allowed',
  'allowed_by_other_rules',
  'not_affected',
  'possibly_cut',
  'cut',
  'blocked_by_override_deny',
] as const
export type Effect = (typeof EFFECTS)[number]

/** What is known of an observed inbound flow. */
export interface ObservedFlow {
  source: { isWorkload: boolean; mode: EndMode; ip: string | null }
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
  /** What the rules beside those of the ringfence say of it. */
  others: OtherAnswers
}

/** `isCovered`: an allow rule of the ringfence lets the source in, on every service. */
export function judgeFlow(flow: ObservedFlow, isCovered: boolean, reach: RingfenceReach): Effect {
  const { selective, denies, elsewhere, hasPending } = reach
  const overridden = isOverridden(flow)
  if (overridden === 'yes') return 'blocked_by_override_deny'
  if (isCovered) {
    // An end that enforces nothing only says that it would block.
    const isOnlySaid = flow.destination === 'none' && flow.draft?.endsWith('override_deny') === true
    return overridden !== 'no' ? 'possibly_cut' : isOnlySaid ? 'not_affected' : 'allowed'
  }
  // An end that drops it today goes on to do so, unless a pending rule of somebody else opens it.
  if (flow.decision === 'blocked') {
    const word = wordOf(flow.draft)
    return (word === null ? hasPending : word !== 'blocked') ? 'possibly_cut' : 'cut'
  }
  const bites = doesDestinationBite(flow, selective, denies)
  const allowed = isAllowedElsewhere(flow, elsewhere)
  const drops = [both(bites, not(allowed)), doesSourceDrop(flow, denies)]
  if (drops.includes('yes')) return 'cut'
  // What the draft blocks at an end that enforces, others may come to block.
  if (drops.includes('maybe') || overridden === 'maybe' || wordOf(flow.draft) === 'blocked') return 'possibly_cut'
  return bites !== 'no' ? 'allowed_by_other_rules' : 'not_affected'
}

/**
 * Whether an override deny holds once the ends are in their new modes. The harder verdict of the two ends hides the reason of
 * the other, so the rules are asked too; where they and the PCE disagree, or the draft and what is in force, it is "maybe".
 */
function isOverridden({ draft, decision, destination, source, isOwn, others: { override } }: ObservedFlow): Answer {
  const isEndSilent =
    (destination === 'idle' && source.mode !== 'none') ||
    (destination === 'visibility_only' && draft === 'blocked') ||
    destination === 'unknown'
  const word = draft?.endsWith('override_deny') === true ? 'yes' : draft === null || isEndSilent ? 'maybe' : 'no'
  if (destination === 'none') {
    const rules = anyOf([override.own, override.active, override.draft])
    const known = word === 'maybe' && (rules !== 'no' || decision === 'blocked') ? 'maybe' : word
    if (isOwn) return source.mode === 'none' ? 'no' : known === 'maybe' ? 'no' : known
    return both(isEnforcing(source.mode) ? 'yes' : source.mode === 'unknown' ? 'maybe' : 'no', known)
  }
  const enforces = destination === 'full' || destination === 'selective'
  const passes = decision === 'allowed' || (enforces && decision === 'potentially_blocked')
  const inForce = settle(
    passes && destination !== 'idle' && destination !== 'unknown' ? 'no' : 'maybe',
    override.active,
  )
  const inDraft = settle(word, override.draft)
  const answer = anyOf([override.own, inForce === inDraft ? inForce : 'maybe'])
  return destination === 'unknown' && word !== 'yes' ? both(answer, 'maybe') : answer
}

/** Whether the destination drops what no allow rule lets in. */
function doesDestinationBite(flow: ObservedFlow, selective: boolean, denies: readonly DenyReach[]): Answer {
  const { destination, draft, others } = flow
  if (destination === 'none') return 'no'
  const { active, draft: pending } = others.deny
  const byOthers = active === pending ? active : 'maybe'
  const denied = anyOf([...denies.map((deny) => matchDeny(deny, flow)), byOthers])
  // A deny rule decided it, be it at the source or one that was not found.
  const unseen = denied === 'no' && draft?.endsWith('_by_boundary') === true ? 'maybe' : denied
  const target = destination === 'full' || !selective ? 'yes' : unseen
  return destination === 'unknown' ? both(target, 'maybe') : target
}

/** A deny rule from all workloads is written to every managed source too, which then drops what it enforces (P51). */
function doesSourceDrop(flow: ObservedFlow, denies: readonly DenyReach[]): Answer {
  const { mode } = flow.source
  // In full mode, what goes out today has a rule that lets it out, and that beats a deny rule.
  if (mode !== 'selective' && mode !== 'unknown') return 'no'
  const denied = anyOf(
    denies
      .filter(({ ams, isUnclear }) => ams || isUnclear)
      .map((deny) => both(deny.isUnclear ? 'maybe' : 'yes', deny.services(flow.port, flow.proto))),
  )
  const hasNoRule =
    mode === 'selective' &&
    wordOf(flow.draft) === 'allowed' &&
    !flow.hasDraftRules &&
    !isEssential(flow) &&
    anyOf([flow.others.allow.own, flow.others.allow.active, flow.others.allow.draft]) === 'no'
  return both(denied, hasNoRule ? 'yes' : 'maybe')
}

function matchDeny(deny: DenyReach, { source, port, proto }: ObservedFlow): Answer {
  const isIpv6 = source.ip?.includes(':') === true
  const named = anyOf([deny.ams && source.isWorkload ? 'yes' : 'no', isIpv6 ? deny.ipv6 : deny.ipv4])
  return both(deny.isUnclear ? 'maybe' : named, deny.services(port, proto))
}

/**
 * Whether an allow rule other than the ringfence's lets the flow in at its destination; such a rule beats the deny rule. What is
 * in force and what the draft would do must agree, because nobody knows what else will be provisioned, and when.
 */
function isAllowedElsewhere(flow: ObservedFlow, elsewhere: AddressRules): Answer {
  const { own, active, draft } = flow.others.allow
  if (own === 'yes') return 'yes'
  const essential = isEssential(flow) ? 'maybe' : 'no'
  const inForce = settle(seenInForce(flow, elsewhere), anyOf([own, active, essential]))
  const inDraft = settle(seenInDraft(flow, elsewhere), anyOf([own, draft, essential]))
  return inForce === inDraft ? inForce : 'maybe'
}

/**
 * What the decision tells. It is the harder of both ends', so it speaks about the destination only where the source cannot have
 * made it; in selective mode, "allowed" may mean only that no deny rule matches.
 */
function seenInForce({ port, proto, destination, source, decision }: ObservedFlow, elsewhere: AddressRules): Answer {
  return isAllowed(decision, destination, source.mode, elsewhere.from(port, proto), 'maybe')
}

/** What the draft decision tells; nothing where the PCE gave none. */
function seenInDraft(flow: ObservedFlow, elsewhere: AddressRules): Answer {
  const { port, proto, destination, source } = flow
  const word = wordOf(flow.draft)
  // An idle end has no decision of its own, so the word is the source's unless nobody judges there. Alone it is judged as if in
  // visibility_only.
  if (word === null || (destination === 'idle' && source.mode !== 'none')) return 'maybe'
  const ruleMayBeOfSource = source.mode !== 'none' && elsewhere.to(port, proto) !== 'no'
  const byRule =
    flow.hasDraftRules && !ruleMayBeOfSource ? 'yes' : flow.hasDraftRules || isEssential(flow) ? 'maybe' : 'no'
  const awake = (mode: EndMode) => (mode === 'idle' ? 'visibility_only' : mode)
  return isAllowed(word, awake(destination), awake(source.mode), elsewhere.from(port, proto), byRule)
}

/** `byRule`: whether "allowed" in selective mode comes from a rule. */
function isAllowed(decision: string, destination: EndMode, source: EndMode, byAddress: Answer, byRule: Answer): Answer {
  const sourceMayHaveSaid =
    source === 'unknown' || (decision === 'blocked' ? isEnforcing(source) : source === 'visibility_only')
  const notAllowed = sourceMayHaveSaid && byAddress !== 'no' ? 'maybe' : 'no'
  switch (destination) {
    case 'visibility_only':
      return decision === 'allowed' ? 'yes' : notAllowed
    case 'full':
      // It says allowed or blocked, so "potentially" is the source's word.
      return decision === 'allowed' || decision === 'potentially_blocked' ? 'yes' : notAllowed
    case 'selective':
      return decision === 'allowed' ? byRule : notAllowed
    default:
      return 'maybe'
  }
}

const isEnforcing = (mode: EndMode) => mode === 'selective' || mode === 'full'

/** What agents keep open whatever the policy, and rules need not name: DHCP, and neighbour discovery of IPv6. */
const isEssential = ({ proto, port }: ObservedFlow) => proto === 58 || (proto === 17 && (port === 67 || port === 68))

/** A draft decision in the words of `policy_decision`. */
function wordOf(draft: string | null): string | null {
  if (draft === null) return null
  return ['potentially_blocked', 'blocked', 'allowed'].find((word) => draft.startsWith(word)) ?? null
}
