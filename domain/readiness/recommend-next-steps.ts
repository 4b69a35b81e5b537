import { protocolName } from '../inventory/protocols.js'
import { countOf } from '../text/count-of.js'
import type { Application } from '../traffic/applications.js'
import type { Coverage } from './collect-coverage.js'
import type { UnlabelledEnd } from './collect-readiness.js'
import type { Readiness, ReadinessFacts, RingfenceState } from './score-readiness.js'
import { coverage, judged, type Decisions, type WeaklyAllowed } from './tally-decisions.js'

/** What the figures mean and what to do next, by the bands 95, 80 and 50 % (T21). */
export function recommendCoverage(found: Coverage, { byDefault, elsewhere }: WeaklyAllowed): string {
  const { flows } = found.overall.decisions
  const percentage = coverage(flows)
  if (percentage === null) return describeNothing(flows.unknown)
  const missing = judged(flows) - flows.allowed
  return [
    missing === 0 ? 'All traffic seen is allowed.' : `${percentage} % of rows are allowed: ${adviceAt(percentage)}`,
    missing > 0 ? nameBusiest(found) : '',
    nameUnlabelled(found),
    describeDraft(found, missing),
    byDefault > 0
      ? `${countOf(byDefault, 'allowed row')} at workloads in selective mode: allowed may only mean that no deny rule matched.`
      : '',
    elsewhere > 0
      ? `${countOf(elsewhere, 'allowed row')} judged by the other end alone: the workload here is idle or has no agent.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

function describeNothing(unknown: number): string {
  return unknown > 0
    ? `Policy decided on none of ${countOf(unknown, 'row')}: no workload with an agent took part.`
    : 'No traffic was seen in the window, so coverage cannot be told: look further back.'
}

function adviceAt(percentage: number): string {
  if (percentage >= 95) return 'settle the few rows left, then enforce.'
  if (percentage >= 80) return 'allow what is needed of the rest before enforcing.'
  if (percentage >= 50) return 'enforcing now would break much; see uncovered_apps.'
  return 'policy is mostly missing; start with create-ringfence and dry_run.'
}

function nameBusiest({ inbound, outbound }: Coverage): string {
  const [first] = [
    ...inbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'inbound' })),
    ...outbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'outbound' })),
  ].sort((a, b) => b.connections - a.connections)
  if (first === undefined) return ''
  const { port, proto, path, connections } = first
  const name = [port, proto === null ? null : protocolName(proto)].filter((part) => part !== null).join('/')
  return `Most of it is ${path} ${name} (${countOf(connections, 'connection')}).`
}

function nameUnlabelled({ inbound }: Coverage): string {
  const { ends } = inbound.uncovered
  if (ends.length === 0) return ''
  return `${countOf(ends.length, 'source')} without app and env labels ${ends.length === 1 ? 'is' : 'are'} among what is not allowed.`
}

function describeDraft({ overall, wouldAllow }: Coverage, missing: number): string {
  if (overall.draft === null || missing === 0) return ''
  if (wouldAllow === 0) return 'The draft policy would allow none of it.'
  return `The draft policy would allow ${wouldAllow} of ${countOf(missing, 'row')}: compare-draft-active shows it.`
}

const MAX_NAMES = 5

/** What to do next, the most pressing first. Every sentence follows from a figure of the answer; nothing found, nothing said. */
export function recommendReadiness(facts: ReadinessFacts, { score, level, unscored, obstacles }: Readiness): string[] {
  const { fleet, decisions, outbound, intra, remotes, ringfence } = facts
  const { byDefault, elsewhere } = facts.weaklyAllowed
  const stopped = remotes.unlabelled.filter((end) => end.uncovered_flows > 0)
  const { modes } = fleet
  const unmanaged = fleet.total - fleet.managed
  return [
    unscored === undefined ? '' : `No score: ${unscored}${hintUnscored(facts)}`,
    remotes.uncovered.length > 0
      ? `Nothing from ${nameApplications(remotes.uncovered)} is allowed: add allow rules, or confirm that enforcement may cut it.`
      : '',
    remotes.partlyCovered.length > 0
      ? `Only part of the traffic from ${nameApplications(remotes.partlyCovered)} is allowed: see uncovered_flows.`
      : '',
    stopped.length > 0 ? recommendUnlabelled(stopped) : '',
    nameGap(outbound, 'outbound row', 'add rules where they go to, by IP list outside; see uncovered_flows.'),
    nameGap(intra, 'intra row', 'rules of its ringfence can allow them.'),
    decisions.flows.blocked > 0
      ? `${countOf(decisions.flows.blocked, 'row')} of traffic blocked already: allow what is needed; the rest keeps 10 points away while it is tried.`
      : '',
    recommendRingfence(ringfence),
    (modes.idle ?? 0) > 0
      ? `${countOf(modes.idle ?? 0, 'workload')} in idle mode: nothing is enforced there; move to visibility_only first.`
      : '',
    unmanaged > 0 && fleet.managed > 0
      ? `${countOf(unmanaged, 'workload')} without an agent: cannot be enforced, and only the other end's policy protects them.`
      : '',
    fleet.offline > 0
      ? `${countOf(fleet.offline, 'workload')} offline: their recent traffic is missing here, and policy reaches them only when they are back.`
      : '',
    byDefault > 0
      ? `${countOf(byDefault, 'allowed row')} at workloads in selective mode: allowed may only mean that no deny rule matched, so full enforcement could block them.`
      : '',
    elsewhere > 0
      ? `${countOf(elsewhere, 'allowed row')} judged by the other end alone: the workload here is idle or has no agent.`
      : '',
    score !== null && obstacles.length > 0
      ? `${score} of 100, but a stricter mode could cut what is allowed now: ${obstacles.join('; ')}. Add allow rules first.`
      : '',
    level === 'ready' && (modes.full ?? 0) < fleet.managed
      ? `${score} of 100: the next step is a stricter mode for ${countOf(fleet.managed - (modes.full ?? 0), 'workload')} not in full enforcement.`
      : '',
  ].filter(Boolean)
}

function hintUnscored({ fleet, decisions }: ReadinessFacts): string {
  if (fleet.managed === 0) return ''
  return decisions.flows.unknown > 0 ? ' Check that agents report and policy applies.' : ' Look further back.'
}

function nameGap({ flows }: Decisions, noun: string, advice: string): string {
  const [all, missing] = [judged(flows), judged(flows) - flows.allowed]
  if (missing === 0) return ''
  return `${missing} of ${countOf(all, noun)} not allowed: ${advice}`
}

function recommendUnlabelled(stopped: readonly UnlabelledEnd[]): string {
  const connections = stopped.reduce((sum, end) => sum + end.uncovered_connections, 0)
  const half = stopped.filter(({ kind }) => kind === 'half_labelled').length
  const halfText = half > 0 ? `, ${half} of them with one of the two` : ''
  return `${countOf(stopped.length, 'source')} without app and env labels${halfText}: ${countOf(connections, 'connection')} not allowed. Label them, or allow them by IP list.`
}

function recommendRingfence({
  name,
  enabled,
  rules,
  provisioned,
  pending_changes: pending,
  conflicts,
}: RingfenceState): string {
  if (enabled === undefined) {
    const [conflict] = conflicts
    if (conflict === undefined) return `No ringfence: plan ${name} with create-ringfence and dry_run.`
    return conflict.why === 'other_scope'
      ? `${conflict.href} is named ${name} but its scope is not exactly this app and env: correct or rename it.`
      : `${name} is marked for deletion: revert that, or provision it and make a new one.`
  }
  if (!enabled) return `${name} is disabled: enable it.`
  if (rules === 0) return `${name} has no enabled rule, so it allows nothing yet.`
  if (!provisioned) return `${name} exists in the draft only: provision it before enforcing.`
  return pending ? `${name} has changes in the draft that are not provisioned.` : ''
}

function nameApplications(applications: readonly Application[]): string {
  const named = applications.slice(0, MAX_NAMES).map(({ app, env }) => `${app} (${env})`)
  const more = applications.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}
