import { anyOf, both, not, type Answer } from './answers.js'
import type { ServiceMatch } from './match-service.js'

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

/** Enforcement mode of an end; `none` has no agent of this PCE, so nothing is enforced there. */
export type EndMode = 'none' | 'idle' | 'visibility_only' | 'selective' | 'full' | 'unknown'

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
}

/** A deny rule of the ringfence, new or existing, from outside its scope to all of its workloads. */
export interface DenyReach {
  ams: boolean
  ipv4: boolean
  ipv6: boolean
  /** It has consumers, providers or conditions that are not judged here. */
  isUnclear: boolean
  services: ServiceMatch
}

export interface RingfenceReach {
  selective: boolean
  denies: readonly DenyReach[]
  elsewhere: AddressRules
}

/**
 * Allow rules anywhere that name one side by its address. Only these can let a flow through at one end and not at the other: a
 * rule that names both ends as workloads is written to both. `from`: at the application's workloads; `to`: at the source.
 */
export interface AddressRules {
  from: ServiceMatch
  to: ServiceMatch
}

/** `isCovered`: an allow rule of the ringfence lets the source in, on every service. */
export function judgeFlow(
  flow: ObservedFlow,
  isCovered: boolean,
  { selective, denies, elsewhere }: RingfenceReach,
): Effect {
  if (flow.draft?.endsWith('override_deny') === true) return 'blocked_by_override_deny'
  if (isCovered) return 'allowed'
  // An end that drops it today goes on to do so, unless a pending rule of somebody else opens it.
  if (flow.decision === 'blocked') return wordOf(flow.draft) === 'allowed' ? 'possibly_cut' : 'cut'
  const bites = doesDestinationBite(flow, selective, denies)
  const allowed = isAllowedElsewhere(flow, elsewhere)
  const drops = [both(bites, not(allowed)), doesSourceDrop(flow, denies)]
  if (drops.includes('yes')) return 'cut'
  if (drops.includes('maybe')) return 'possibly_cut'
  return bites !== 'no' ? 'allowed_by_other_rules' : 'not_affected'
}

/** Whether the destination drops what no allow rule lets in. */
function doesDestinationBite(flow: ObservedFlow, selective: boolean, denies: readonly DenyReach[]): Answer {
  const { destination } = flow
  if (destination === 'none') return 'no'
  const target = destination === 'full' || !selective ? 'yes' : anyOf(denies.map((deny) => matchDeny(deny, flow)))
  return destination === 'unknown' ? both(target, 'maybe') : target
}

/** A deny rule from all workloads is written to every managed source too, which then drops what it enforces (knowledge, facts). */
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
    mode === 'selective' && wordOf(flow.draft) === 'allowed' && !flow.hasDraftRules && !isEssential(flow)
  return both(denied, hasNoRule ? 'yes' : 'maybe')
}

function matchDeny(deny: DenyReach, { source, port, proto }: ObservedFlow): Answer {
  const isIpv6 = source.ip?.includes(':') === true
  const named = (deny.ams && source.isWorkload) || (isIpv6 ? deny.ipv6 : deny.ipv4)
  return both(deny.isUnclear ? 'maybe' : named ? 'yes' : 'no', deny.services(port, proto))
}

/**
 * Whether an allow rule other than the ringfence's lets the flow in at its destination; such a rule beats the deny rule. The
 * decision is the harder of both ends', so it tells about the destination only where the source cannot have made it. The draft
 * decides where the active policy leaves it open: in selective mode, "allowed" may mean only that no deny rule matches.
 */
function isAllowedElsewhere(flow: ObservedFlow, elsewhere: AddressRules): Answer {
  const { port, proto, destination, source } = flow
  const byAddress = elsewhere.from(port, proto)
  const active = isAllowed(flow.decision, destination, source.mode, byAddress, 'maybe')
  const word = wordOf(flow.draft)
  if (word === null) return active
  const ruleMayBeOfSource = source.mode !== 'none' && elsewhere.to(port, proto) !== 'no'
  const byRule =
    flow.hasDraftRules && !ruleMayBeOfSource ? 'yes' : flow.hasDraftRules || isEssential(flow) ? 'maybe' : 'no'
  // An idle end has no decision of its own, so the word is the source's unless nobody judges there. Alone it is judged as if in
  // visibility_only.
  if (destination === 'idle' && source.mode !== 'none') return 'maybe'
  const awake = (mode: EndMode) => (mode === 'idle' ? 'visibility_only' : mode)
  const draft = isAllowed(word, awake(destination), awake(source.mode), byAddress, byRule)
  return active === 'maybe' || active === draft ? draft : 'maybe'
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
