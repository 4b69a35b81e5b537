import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import type { RuleArguments } from '../drafts/plan-rules.js'
import type { LabelIndex } from '../inventory/labels.js'
import { portName } from '../inventory/protocols.js'
import { noDisagreement } from '../policy/compare-record.js'
import { passesByDefault } from '../policy/mode-effects.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { onCorporateNetwork } from '../policy/match-rules.js'
import { anyOf, isUnknown, type Answer, type Reason } from '../policy/three-valued.js'
import { quote } from '../text/escape-text.js'
import {
  collectDestinations,
  collectSources,
  isSameApplication,
  nameOf,
  type Discovery,
  type InboundFlow,
  type OutboundFlow,
  type RemoteApplication,
  type Sources,
} from './discover-peers.js'
import type { SourceChoice } from './choose-sources.js'
import type { Existing, Need, Remote } from './find-existing.js'
import { judgeFlow, type FlowVerdict } from './judge-flow.js'
import type { RuleAnswers, Surroundings } from './read-surroundings.js'
import { applicationId, type Application } from '../traffic/applications.js'

/** The types of ringfence rules in the order in which they are written. Allow rules come before deny rules. */
export const RINGFENCE_RULE_TYPES = ['intra-scope', 'extra-scope allow (inbound)', 'deny (block all inbound)'] as const
export type RingfenceRuleType = (typeof RINGFENCE_RULE_TYPES)[number]

export type PeerCoverage = 'already_allowed' | 'newly_allowed'

/**
 * A rule of the ringfence. An extra-scope rule lets in traffic from outside the scope; `remote` is the application that
 * it lets in.
 */
export interface RingfenceRule {
  type: RingfenceRuleType
  remote?: Application & { coverage: PeerCoverage }
}

export interface NewRule extends RingfenceRule {
  asked: RuleArguments
  /** The traffic that the allow rule must permit; absent for the deny rule. */
  need?: Need
}

export interface StandingRule extends RingfenceRule {
  href: string
  /** The traffic that the allow rule must permit; absent for the deny rule. */
  need?: Need
}

/** An application that was observed as a source, and what the plan does about it. */
export interface PlannedRemote extends RemoteApplication {
  coverage: PeerCoverage
  /** True if flows from the application pass, or may pass, only because no deny rule matches them yet. */
  allowedByDefaultPossible: boolean
  /** The rule by which the plan lets the source in; `excluded` if the caller left it out. */
  rule: 'new' | 'existing' | 'excluded' | 'none'
}

export interface PlanInput {
  /** The app label and the env label of the application. */
  application: readonly [Label, Label]
  labels: LabelIndex
  discovery: Pick<Discovery, 'inbound' | 'outbound'>
  skipAllowed: boolean
  choice: Pick<SourceChoice, 'leavesOut' | 'unused'>
  /** The requested deny rule; null unless the ringfence is selective. */
  deny: { consumers: Actor[]; services: IngressService[] } | null
  existing: Existing
  /** The href of the built-in service All Services. */
  allServices: string
  surroundings: Pick<Surroundings, 'judge' | 'judgeAt' | 'hasPending'>
}

/** The rules of a ringfence and their effects on other applications. Making the plan takes no requests to the PCE. */
export interface RingfencePlan {
  newRules: NewRule[]
  standingRules: StandingRule[]
  remotes: PlannedRemote[]
  skippedAllowed: Application[]
  /** The caller's exclusions that match no observed source. */
  unusedExclusions: string[]
  /** The sources of inbound traffic, including the application itself, with the effect on each port. */
  sources: Sources
  destinations: RemoteApplication[]
  /**
   * Outbound traffic that the application's workloads will drop once they are in the mode for which the ringfence is
   * intended.
   */
  lostOutbound: LostOutbound
  /** Connections in either direction whose recorded decision differs from what the active policy decides now. */
  recorded: RecordedOtherwise
  /** The unconfirmed facts about the PCE on which the effects depend. */
  assumes: readonly string[]
}

/** Plans a ringfence (T15). Throws label_not_found if the label list lacks a label of a source. */
export function planRingfence(input: PlanInput): RingfencePlan {
  const { application, labels, discovery, deny, existing, surroundings } = input
  const [app, env] = application
  const own = { app: app.value, env: env.value }
  const newRules: NewRule[] = []
  const standingRules: StandingRule[] = []
  const place = (rule: RingfenceRule, standing: string | undefined, asked: RuleArguments, need?: Need) => {
    if (standing === undefined) newRules.push({ ...rule, asked, ...(need !== undefined && { need }) })
    else standingRules.push({ ...rule, href: standing, ...(need !== undefined && { need }) })
    return standing === undefined ? ('new' as const) : ('existing' as const)
  }
  const allow = { providers: ['ams'], ingress_services: [{ href: input.allServices }] }

  place(
    { type: 'intra-scope' },
    existing.covering(null),
    { ...allow, consumers: ['ams'], unscoped_consumers: false, description: `Inside ${own.app} (${own.env})` },
    null,
  )
  const states = new Map<string, Pick<PlannedRemote, 'coverage' | 'allowedByDefaultPossible' | 'rule'>>()
  const seen: Application[] = []
  const skippedAllowed: Application[] = []
  for (const { remote, ...state } of findRemotes(discovery.inbound, own)) {
    seen.push(remote)
    const needed = labelsOf(remote, labels)
    const standing = existing.covering(needed)
    const isExcluded = input.choice.leavesOut(remote)
    const isSkipped = !isExcluded && input.skipAllowed && state.coverage === 'already_allowed'
    if (isSkipped && standing === undefined) skippedAllowed.push(remote)
    const rule = { type: 'extra-scope allow (inbound)' as const, remote: { ...remote, coverage: state.coverage } }
    const asked = {
      ...allow,
      consumers: [{ href: needed.app.href }, { href: needed.env.href }],
      unscoped_consumers: true,
      description: `Inbound from ${remote.app} (${remote.env})`,
    }
    const without = standing !== undefined ? null : isExcluded ? 'excluded' : isSkipped ? 'none' : null
    states.set(applicationId(remote), { ...state, rule: without ?? place(rule, standing, asked, needed) })
  }
  // The deny rule comes last, so that an incomplete ringfence cuts nothing.
  if (deny !== null) {
    place({ type: 'deny (block all inbound)' }, existing.coveringDeny(deny.consumers, deny.services), {
      providers: ['ams'],
      consumers: deny.consumers.map(({ ip_list: list }) => (list === undefined ? 'ams' : { href: list.href })),
      ingress_services: deny.services,
      unscoped_consumers: true,
      rule_type: 'deny',
      description: `Everything else inbound to ${own.app} (${own.env})`,
    })
  }

  const hasRule = (source: Application) =>
    isSameApplication(source, own) || ['new', 'existing'].includes(states.get(applicationId(source))?.rule ?? 'new')
  // The rules of a ringfence apply to the corporate network only, which is the PCE's default for rules.
  const isCovered = ({ application, source, destination }: InboundFlow): Answer =>
    application !== null && hasRule(application) ? onCorporateNetwork(source, destination) : 'no'
  const asked = { selective: deny !== null, hasPending: surroundings.hasPending }
  const judge = (flow: InboundFlow, rules: RuleAnswers) =>
    judgeFlow(
      {
        ...flow,
        today: flow.today.drops,
        source: flow.sourceMode,
        destination: flow.destinationMode,
        isOwn: flow.application !== null && isSameApplication(flow.application, own),
        rules,
      },
      isCovered(flow),
      asked,
    )
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()
  const compare = ({ today: { disagreement }, connections }: Pick<InboundFlow, 'today' | 'connections'>) => {
    if (disagreement !== null) recorded[disagreement] += connections
  }
  const judgeOne = (flow: InboundFlow): FlowVerdict => {
    const { source, destination, port, proto } = flow
    const verdict = judge(flow, surroundings.judge(source, port, proto))
    if (destination.workload === null || !dependsOnDestination(verdict)) return verdict
    return judge(flow, surroundings.judgeAt(destination)(source, port, proto))
  }
  const sources = collectSources(discovery.inbound, (flow) => {
    const verdict = judgeOne(flow)
    const { source, destination, today } = flow
    compare(flow)
    // If neither end enforces anything, rules do not decide about the traffic.
    if (verdict.effect !== 'not_affected') assumed.add(verdict.undecided, source, destination)
    // Whether an application counts as already_allowed depends on what is allowed today.
    if (flow.application !== null && today.word !== 'unknown') assumed.add(today.undecided, source, destination)
    return verdict
  })
  const outbound = withoutOwn(discovery.outbound, own)
  for (const flow of outbound) compare(flow)
  const lostOutbound = findLostOutbound(outbound, asked.selective)
  assumed.add(lostOutbound.undecided)
  return {
    newRules,
    standingRules,
    remotes: sources.applications.flatMap((remote) => {
      const state = states.get(applicationId(remote))
      return state === undefined ? [] : [{ ...remote, ...state }]
    }),
    skippedAllowed,
    unusedExclusions: input.choice.unused(seen),
    sources,
    destinations: collectDestinations(outbound),
    lostOutbound,
    recorded,
    assumes: assumed.list(),
  }
}

/** Reasons for doubt that may disappear when each workload of the application is considered individually. */
const OF_DESTINATION: readonly Reason[] = ['address', 'label', 'workload']

const dependsOnDestination = ({ undecided }: FlowVerdict): boolean =>
  isUnknown(undecided) && undecided.unknown.some((reason) => OF_DESTINATION.includes(reason))

/** An application that sends traffic to the application for which the ringfence is planned. */
export interface FoundRemote {
  remote: Application
  /** `already_allowed` if rules in force allow all observed flows from the application, otherwise `newly_allowed`. */
  coverage: PeerCoverage
  /** True if at least one flow passes, or may pass, only because no deny rule matches it yet. */
  allowedByDefaultPossible: boolean
}

/** Returns the applications among the sources, sorted by app, then env. */
export function findRemotes(flows: Iterable<InboundFlow>, own: Application): FoundRemote[] {
  const found = new Map<string, FoundRemote>()
  for (const { application: remote, today } of flows) {
    if (remote === null || isSameApplication(remote, own)) continue
    const key = applicationId(remote)
    const known = found.get(key) ?? { remote, coverage: 'already_allowed', allowedByDefaultPossible: false }
    if (today.word !== 'allowed') known.coverage = 'newly_allowed'
    if (today.isByDefault) known.allowedByDefaultPossible = true
    found.set(key, known)
  }
  // Comparing the keys by code unit orders them by app first and then by env, because the separator in a key sorts
  // before any character of a label value.
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, remote]) => remote)
}

/** Returns the labels of a source. Throws label_not_found if the label list lacks one of them. */
export function labelsOf({ app, env }: Application, labels: LabelIndex): Remote {
  const [appLabel, envLabel] = [labels.find('app', app), labels.find('env', env)]
  if (appLabel !== undefined && envLabel !== undefined) return { app: appLabel, env: envLabel }
  const label = appLabel === undefined ? `app=${app}` : `env=${env}`
  const text = `A source has the label ${quote(label)}, which is not in the label list. Nothing was written.`
  throw new ToolError('label_not_found', text, { label }, { hint: 'Labels may be changing; call again.' })
}

/** The message that says why a ringfence is written without its deny rule for now. */
export const DENY_WITHHELD =
  'the inbound traffic was not read in full, so sources that have no allow rule yet would be cut unseen. Call again with complete: true or a shorter lookback_days to complete it.'

/**
 * Removes the new deny rule from a plan if the inbound query reached its row limit. Sources beyond the limit would get
 * no allow rule and would not appear in the answer. The reported effects are still those of the complete ringfence. An
 * existing deny rule is kept.
 */
export function withholdDeny(
  plan: RingfencePlan,
  { reads }: Pick<Discovery, 'reads'>,
): { plan: RingfencePlan; denyWithheld: boolean } {
  const newRules = plan.newRules.filter(({ need }) => need !== undefined)
  const denyWithheld = reads.inbound.truncated && newRules.length < plan.newRules.length
  return { plan: denyWithheld ? { ...plan, newRules } : plan, denyWithheld }
}

/** A destination to which the application may lose access. */
export interface LostDestination {
  /** The destination application; null if the destination is not an application. */
  application: Application | null
  name: string
  connections: number
  /** The ports of the lost traffic, such as `443/tcp`. */
  ports: string[]
}

/**
 * The outbound traffic that workloads will drop in the mode for which the ringfence is intended: in full enforcement
 * because no rule allows it, in selective enforcement possibly because of deny rules (P51).
 */
export interface LostOutbound {
  /** Number of connections that no rule allows for certain, except those counted in `byDefault` and `untold`. */
  certain: number
  /** Number of connections that pass in selective mode only because no deny rule matches them. */
  byDefault: number
  /** Number of connections that no rule allows and whose source has an unknown mode, which may be selective. */
  untold: number
  /** Number of connections that may or may not be dropped; `undecided` has the reasons. */
  open: number
  undecided: Answer
  /** The destinations that lose connections, the busiest first. Those that only may lose some are left out. */
  destinations: LostDestination[]
}

/** Returns the outbound flows except those inside the application. */
const withoutOwn = (flows: Iterable<OutboundFlow>, own: Application): Iterable<OutboundFlow> => ({
  *[Symbol.iterator]() {
    for (const flow of flows) if (flow.application === null || !isSameApplication(flow.application, own)) yield flow
  },
})

/** Finds the outbound traffic that the application would lose, whatever decision the PCE recorded. */
function findLostOutbound(outbound: Iterable<OutboundFlow>, selective: boolean): LostOutbound {
  const found = new Map<string, LostDestination & { portSet: Set<string> }>()
  const lost = { certain: 0, byDefault: 0, untold: 0, open: 0 }
  const doubts = new Set<Answer>()
  for (const flow of outbound) {
    const { application, destination, connections } = flow
    const why = reasonOf(flow, selective)
    if (why === null) continue
    lost[why] += connections
    if (why === 'open') {
      doubts.add(flow.today.dropsThen)
      continue
    }
    const key =
      application === null
        ? `${destination.workload} ${destination.fqdn ?? destination.ip}`
        : applicationId(application)
    const one = found.get(key) ?? {
      application,
      name:
        application === null
          ? nameOf({ ...pick('name', destination.name), ...pick('fqdn', destination.fqdn), ip: destination.ip })
          : `${application.app} (${application.env})`,
      connections: 0,
      ports: [],
      portSet: new Set<string>(),
    }
    one.connections += connections
    one.portSet.add(portName(flow))
    found.set(key, one)
  }
  const destinations = [...found.values()]
    .map(({ portSet, ...one }) => ({ ...one, ports: [...portSet] }))
    .sort((a, b) => b.connections - a.connections || (a.name < b.name ? -1 : 1))
  return { ...lost, undecided: anyOf(doubts), destinations }
}

const pick = <K extends string>(key: K, value: string | null) =>
  (value === null ? {} : { [key]: value }) as Partial<Record<K, string>>

/**
 * Returns the name of the counter in `LostOutbound` to which a flow is added, or null if it is not counted. It is not
 * counted if its source certainly does not drop it in the intended mode or, for a selective ringfence, drops it
 * already.
 */
function reasonOf(
  { sourceMode, today }: OutboundFlow,
  selective: boolean,
): 'certain' | 'byDefault' | 'untold' | 'open' | null {
  const { dropsThen, sourceDrops } = today
  // A source without a VEN will enforce nothing.
  if (sourceMode === 'none' || dropsThen === 'no') return null
  if (isUnknown(dropsThen)) return 'open'
  // A workload that certainly drops something although the intended mode is selective must already be in full
  // enforcement.
  if (selective) return null
  if (sourceMode === 'unknown') return 'untold'
  // In selective mode, a source lets connections pass even if no rule allows them (P52).
  return passesByDefault(sourceMode) && sourceDrops === 'no' ? 'byDefault' : 'certain'
}
