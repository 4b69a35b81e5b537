import type { Label } from '../../schemas/pce/label.js'
import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import { applicationId, type Application } from '../traffic/applications.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import type { RuleArguments } from '../drafts/plan-rules.js'
import {
  collectDestinations,
  collectSources,
  isSameApplication,
  type RemoteApplication,
  type Sources,
} from './collect-peers.js'
import { reachOf, type Existing } from './compare-existing.js'
import type { Need, Known, AddressRules } from './reach.js'
import type { Discovery, InboundFlow } from './discover-flows.js'
import { findRemotes, labelsOf, type Coverage } from './find-remotes.js'
import { judgeFlow } from './judge-flow.js'
import { findLostOutbound, type LostOutbound } from './lost-outbound.js'
import type { OtherRules } from './read-others.js'

/** The rules of a ringfence, in the order in which they are written: what allows comes before what denies. */
export const RULE_TYPES = ['intra-scope', 'extra-scope allow (inbound)', 'deny (block all inbound)'] as const
export type RingfenceRuleType = (typeof RULE_TYPES)[number]

/** One rule of the ringfence; `remote` is whom an extra-scope rule is for. */
export interface RingfenceRule {
  type: RingfenceRuleType
  remote?: Application & { coverage: Coverage }
}

export interface NewRule extends RingfenceRule {
  asked: RuleArguments
  /** What an allow rule is needed for; absent for the deny rule. */
  need?: Need
}

export interface StandingRule extends RingfenceRule {
  href: string
  /** As of a new rule. */
  need?: Need
}

/** An application that was seen as a source, and what the plan does about it. */
export interface PlannedRemote extends RemoteApplication {
  coverage: Coverage
  /** Its flows are allowed, but maybe only because no deny rule matches them yet. */
  allowedByDefaultPossible: boolean
  rule: 'new' | 'existing' | 'none'
}

export interface PlanInput {
  /** The app label and the env label. */
  application: readonly [Label, Label]
  labels: LabelIndex
  discovery: Pick<Discovery, 'inbound' | 'outbound'>
  skipAllowed: boolean
  /** The deny rule that is asked for; null unless the ringfence is selective. */
  deny: { consumers: Actor[]; services: IngressService[] } | null
  existing: Existing
  known: Known
  elsewhere: AddressRules
  others: Pick<OtherRules, 'judge' | 'pending'>
}

/** Everything a ringfence will do, and to whom. Nothing here asks the PCE. */
export interface RingfencePlan {
  newRules: NewRule[]
  standingRules: StandingRule[]
  remotes: PlannedRemote[]
  skippedAllowed: Application[]
  /** Inbound, with the effect on each port. The application itself is among them. */
  sources: Sources
  destinations: RemoteApplication[]
  /** What the workloads of the application drop once they are in full enforcement. */
  lostOutbound: LostOutbound
}

/** Plans a ringfence (T15). Throws label_not_found for a source whose labels are not in the label list. */
export function planRingfence(input: PlanInput): RingfencePlan {
  const { application, labels, discovery, deny, existing, known } = input
  const [app, env] = application
  const own = { app: app.value, env: env.value }
  const newRules: NewRule[] = []
  const standingRules: StandingRule[] = []
  const place = (rule: RingfenceRule, standing: string | undefined, asked: RuleArguments, need?: Need) => {
    if (standing === undefined) newRules.push({ ...rule, asked, ...(need !== undefined && { need }) })
    else standingRules.push({ ...rule, href: standing, ...(need !== undefined && { need }) })
    return standing === undefined ? ('new' as const) : ('existing' as const)
  }
  const allow = { providers: ['ams'], ingress_services: [{ href: known.allServices }] }

  place(
    { type: 'intra-scope' },
    existing.covering(null),
    { ...allow, consumers: ['ams'], unscoped_consumers: false, description: `Inside ${own.app} (${own.env})` },
    null,
  )
  const states = new Map<string, Pick<PlannedRemote, 'coverage' | 'allowedByDefaultPossible' | 'rule'>>()
  const skippedAllowed: Application[] = []
  for (const { remote, ...state } of findRemotes(discovery.inbound, own)) {
    const needed = labelsOf(remote, labels)
    const standing = existing.covering(needed)
    const isSkipped = standing === undefined && input.skipAllowed && state.coverage === 'already_allowed'
    if (isSkipped) skippedAllowed.push(remote)
    const rule = { type: 'extra-scope allow (inbound)' as const, remote: { ...remote, coverage: state.coverage } }
    const asked = {
      ...allow,
      consumers: [{ href: needed.app.href }, { href: needed.env.href }],
      unscoped_consumers: true,
      description: `Inbound from ${remote.app} (${remote.env})`,
    }
    states.set(applicationId(remote), { ...state, rule: isSkipped ? 'none' : place(rule, standing, asked, needed) })
  }
  // Last, so that nothing is cut by a ringfence that is only half there.
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

  const isCovered = ({ application: source }: InboundFlow) =>
    source !== null && (isSameApplication(source, own) || states.get(applicationId(source))?.rule !== 'none')
  const reach = {
    selective: deny !== null,
    denies: [...existing.denies, ...newDenyOf(input)],
    elsewhere: input.elsewhere,
    hasPending: input.others.pending.length > 0,
  }
  const sources = collectSources(discovery.inbound, (flow) =>
    judgeFlow(
      {
        ...flow,
        source: { isWorkload: flow.source.workload !== null, mode: flow.sourceMode, ip: flow.source.ip },
        isOwn: flow.application !== null && isSameApplication(flow.application, own),
        others: input.others.judge(flow.source, flow.port, flow.proto),
      },
      isCovered(flow),
      reach,
    ),
  )
  return {
    newRules,
    standingRules,
    remotes: sources.applications.flatMap((remote) => {
      const state = states.get(applicationId(remote))
      return state === undefined ? [] : [{ ...remote, ...state }]
    }),
    skippedAllowed,
    sources,
    destinations: collectDestinations(discovery.outbound).filter((one) => !isSameApplication(one, own)),
    lostOutbound: findLostOutbound(discovery, own),
  }
}

function newDenyOf({ deny, known }: PlanInput) {
  if (deny === null) return []
  const { consumers, services } = deny
  return [
    reachOf({ consumers, providers: [{ actors: 'ams' }], ingress_services: services, unscoped_consumers: true }, known),
  ]
}
