import { isMode } from '../../schemas/pce/enforcement-modes.js'
import { explainRecorded } from '../../schemas/recorded-otherwise.js'
import { protocolName } from '../inventory/protocols.js'
import { tellIpTables } from '../policy/ip-tables.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import type { Application } from '../traffic/applications.js'
import type { Coverage } from './collect-coverage.js'
import type { UnlabelledEnd } from './collect-readiness.js'
import type { Readiness, ReadinessFacts, RingfenceState } from './score-readiness.js'
import { coverage, judged, notAllowed, type Decisions, type Reliance } from './tally-decisions.js'

/** Explains the coverage figures and recommends what to do next. The advice changes at 95, 80 and 50 % (T21). */
export function recommendCoverage(found: Coverage, reliance: Reliance): string {
  const { flows } = found.overall.decisions
  const percentage = coverage(flows)
  if (percentage === null) return [describeNothing(flows, reliance), ...reliance.modes].join(' ')
  const missing = notAllowed(flows)
  const uncovered = missing + flows.undecided
  // Undecided rows are left out of the advice, because a rule may already allow them.
  const decided = coverage({ ...flows, undecided: 0 }) ?? percentage
  return [
    uncovered === 0
      ? 'All observed traffic is allowed.'
      : missing === 0
        ? `${percentage} % of rows are known to be allowed.`
        : `${percentage} % of rows are allowed: ${adviceAt(decided, flows.undecided)}`,
    uncovered > 0 ? nameBusiest(found, flows.undecided) : '',
    nameUnlabelled(found),
    describeDraft(found, missing),
    ...describeReliance(flows, reliance, ''),
  ]
    .filter(Boolean)
    .join(' ')
}

function describeNothing({ unknown, undecided }: Decisions['flows'], reliance: Reliance): string {
  if (undecided > 0) return `Coverage is not known: of ${countOf(undecided, 'row')} all are ${reliance.undecided}.`
  return unknown > 0
    ? `Policy decided on none of ${countOf(unknown, 'row')}: neither end has a VEN that enforces or reports policy.`
    : 'No traffic was seen in the window, so coverage is unknown: look further back.'
}

function adviceAt(percentage: number, undecided: number): string {
  if (percentage >= 95) return `resolve the few rows left${undecided > 0 ? ' and those undecided' : ''}, then enforce.`
  if (percentage >= 80) return 'add rules for what is still needed before enforcing.'
  if (percentage >= 50) return 'enforcing now would break a lot; see uncovered_apps.'
  return 'policy is mostly missing; start with create-ringfence and dry_run.'
}

function nameBusiest({ inbound, outbound }: Coverage, undecided: number): string {
  const [first] = [
    ...inbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'inbound' })),
    ...outbound.uncovered.services.slice(0, 1).map((service) => ({ ...service, path: 'outbound' })),
  ].sort((a, b) => b.connections - a.connections)
  if (first === undefined) return ''
  const { port, proto, path, connections } = first
  const name = [port, proto === null ? null : protocolName(proto)].filter((part) => part !== null).join('/')
  const all = undecided > 0 ? 'what is not known to be allowed' : 'it'
  return `Most of ${all} is ${path} ${name} (${countOf(connections, 'connection')}).`
}

function nameUnlabelled({ inbound }: Coverage): string {
  const { ends } = inbound.uncovered
  if (ends.length === 0) return ''
  return `${countOf(ends.length, 'source')} without app and env labels sent traffic that is not known to be allowed.`
}

function describeDraft({ overall, wouldAllow }: Coverage, missing: number): string {
  if (overall.draft === null || missing === 0) return ''
  if (wouldAllow === 0) return 'The draft policy would allow none of the rest.'
  return `The draft policy would allow ${wouldAllow} of the other ${countOf(missing, 'row')}: see compare-draft-active.`
}

const MAX_NAMES = 5

/**
 * Recommends next steps, the most urgent first. Each sentence is based on a figure in the answer. The list is empty if
 * there is nothing to do.
 */
export function recommendReadiness(facts: ReadinessFacts, { score, level, unscored, obstacles }: Readiness): string[] {
  const { fleet, decisions, outbound, intra, remotes, ringfence, reliance } = facts
  const stopped = remotes.unlabelled.filter((end) => end.uncovered_flows > 0)
  const { modes } = fleet
  const untold = Object.entries(modes).reduce((sum, [mode, many]) => (isMode(mode) ? sum : sum + many), 0)
  const lenient = fleet.managed - (modes.full ?? 0) - untold
  const unmanaged = fleet.total - fleet.managed
  return [
    unscored === undefined ? '' : `No score: ${unscored}${hintUnscored(facts)}`,
    remotes.uncovered.length > 0
      ? `Nothing from ${nameApplications(remotes.uncovered)} is allowed: add allow rules, or confirm that enforcement may block it.`
      : '',
    remotes.partlyCovered.length > 0
      ? `Only part of the traffic from ${nameApplications(remotes.partlyCovered)} is known to be allowed: see uncovered_flows.`
      : '',
    stopped.length > 0 ? recommendUnlabelled(stopped) : '',
    nameGap(
      outbound,
      'outbound row',
      'add rules at their destinations, by IP list for those outside; see uncovered_flows.',
    ),
    nameGap(intra, 'intra row', 'the ringfence can allow them.'),
    decisions.flows.blocked > 0
      ? `${countOf(decisions.flows.blocked, 'row')} blocked already: allow what is needed. The rest costs 10 points for as long as it is attempted.`
      : '',
    recommendRingfence(ringfence),
    (modes.idle ?? 0) > 0
      ? `${countOf(modes.idle ?? 0, 'workload')} in idle mode, where nothing is enforced: move to visibility_only first.`
      : '',
    untold > 0
      ? `The PCE does not tell the mode of ${countOf(untold, 'workload')}: whether ${untold === 1 ? 'it enforces' : 'they enforce'} policy is not known.`
      : '',
    unmanaged > 0 && fleet.managed > 0
      ? `${countOf(unmanaged, 'workload')} without a VEN: nothing can be enforced there, and only policy at the other end protects them.`
      : '',
    fleet.kubernetes > 0
      ? `${countOf(fleet.kubernetes, 'Kubernetes workload')} of ${fleet.total}: their mode is that of the container workload profile of their namespace, and is changed there.`
      : '',
    fleet.offline > 0
      ? `${countOf(fleet.offline, 'workload')} offline: their recent traffic is missing here, and policy reaches them only once they are back.`
      : '',
    fleet.onlineUnknown > 0
      ? `Whether ${countOf(fleet.onlineUnknown, 'workload')} ${fleet.onlineUnknown === 1 ? 'is' : 'are'} online is not known: recent traffic may be missing here.`
      : '',
    ...describeReliance(decisions.flows, reliance, ', so full enforcement could block them'),
    score !== null && obstacles.length > 0
      ? `${score} of 100, but a stricter mode could block what is allowed now: ${obstacles.join('; ')}.${reliance.byDefault > 0 || ringfence.rules === 0 ? ' Add allow rules first.' : ''}`
      : '',
    level === 'ready' && lenient > 0
      ? `${score} of 100: the next step is a stricter mode for the ${countOf(lenient, 'workload')} not in full enforcement.`
      : '',
  ].filter(Boolean)
}

function hintUnscored({ fleet, decisions }: ReadinessFacts): string {
  if (fleet.managed === 0) return ''
  return decisions.flows.unknown > 0 ? ' Check that VENs are online and not idle.' : ' Look further back.'
}

function nameGap({ flows }: Decisions, noun: string, advice: string): string {
  const [all, missing] = [judged(flows), notAllowed(flows)]
  if (missing === 0) return ''
  return `${missing} of ${countOf(all, noun)} not allowed: ${advice}`
}

function recommendUnlabelled(stopped: readonly UnlabelledEnd[]): string {
  const connections = stopped.reduce((sum, end) => sum + end.uncovered_connections, 0)
  const half = stopped.filter(({ kind }) => kind === 'half_labelled').length
  const halfText = half > 0 ? `, ${half} of them with one of the two` : ''
  return `${countOf(stopped.length, 'source')} without both app and env labels${halfText}: ${countOf(connections, 'connection')} not known to be allowed. Label them, or allow them by IP list.`
}

function recommendRingfence({
  name,
  enabled,
  rules,
  provisioned,
  pending_changes: pending,
  conflicts,
  href = '',
}: RingfenceState): string {
  const alike = conflicts.filter(({ why }) => why === 'same_scope').length
  if (alike > 0)
    return `${alike + 1} rule sets are named ${quote(name)} and have exactly this scope; of them only ${href} was judged as the ringfence: rename or delete all but one.`
  if (enabled === undefined) {
    const [conflict] = conflicts
    if (conflict === undefined) return `No ringfence: plan ${quote(name)} with create-ringfence and dry_run.`
    return conflict.why === 'other_scope'
      ? `${conflict.href} is named ${quote(name)} but its scope is not exactly this app and env: correct its scope or rename it.`
      : `The rule set ${quote(name)} is marked for deletion: revert that, or provision the deletion and create a new one.`
  }
  if (!enabled) return `The rule set ${quote(name)} is disabled: enable it.`
  if (rules === 0) return `The rule set ${quote(name)} has no enabled rule, so it allows nothing yet.`
  if (!provisioned) return `The rule set ${quote(name)} exists in the draft only: provision it before enforcing.`
  return pending ? `The rule set ${quote(name)} has draft changes that are not provisioned.` : ''
}

function nameApplications(applications: readonly Application[]): string {
  const named = applications.slice(0, MAX_NAMES).map(({ app, env }) => quote(`${app} (${env})`))
  const more = applications.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}

/** Returns sentences about the questions that remain open because rows could not be decided. */
function describeReliance(
  { undecided: count }: Decisions['flows'],
  { byDefault, undecided, maybeBlocked, elsewhere, iptables, recorded, modes }: Reliance,
  consequence: string,
): string[] {
  return [
    count > 0 ? `${countOf(count, 'row')} ${undecided}: not counted as allowed.` : '',
    byDefault > 0
      ? `${countOf(byDefault, 'row')} may pass only by default (selective mode, or one that is not known): no rule is known to allow them${consequence}.`
      : '',
    maybeBlocked.uncovered > 0
      ? `${countOf(maybeBlocked.uncovered, 'row')} that no rule allows may be blocked already: ${maybeBlocked.because}.`
      : '',
    elsewhere > 0 ? `${countOf(elsewhere, 'allowed row')} judged by the other end alone: here is no VEN.` : '',
    ...modes,
    explainRecorded(recorded),
    ...tellIpTables(iptables),
  ]
}
