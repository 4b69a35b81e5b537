import { tellUnread } from '../inventory/kubernetes-workloads.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { tellIpTables } from '../policy/ip-tables.js'
import { isInForce } from '../policy/load-snapshot.js'
import type { RingfenceFound } from '../ringfence/find-existing.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import type { Remotes } from './collect-readiness.js'
import { coverage, judged, type Decisions, type Reliance } from './tally-decisions.js'

/** Whether an application's ringfence exists in the draft, and whether it is in force. */
export interface RingfenceState {
  /** The rule set name that was searched for. */
  name: string
  href?: string
  enabled?: boolean
  /** Number of enabled allow and deny rules. */
  rules?: number
  /** True if the ringfence is in the active policy and enabled. */
  provisioned: boolean
  /** True if the ringfence in the draft differs from the active one. */
  pending_changes: boolean
  /** Other rule sets with the name of the ringfence, each with the reason why it is not the ringfence. */
  conflicts: { href: string; why: 'other_scope' | 'pending_deletion' | 'same_scope' }[]
}

/**
 * Combines the draft and active versions of a ringfence. A ringfence exists if it is in the draft (T15, T10). If
 * several rule sets have its name and scope, the first enabled one counts as the ringfence, and the others are
 * conflicts.
 */
export function describeRingfence(draft: RingfenceFound, active: RingfenceFound): RingfenceState {
  const [drafts, actives] = [draft, active].map(({ ruleSet: one, others }) => (one === null ? [] : [one, ...others]))
  const ruleSet = drafts?.find(({ enabled }) => enabled !== false) ?? draft.ruleSet
  const inForce = actives?.filter(({ href }) => ruleSet === null || toDraftHref(href) === ruleSet.href)
  return {
    name: draft.name,
    ...(ruleSet !== null && {
      href: ruleSet.href,
      enabled: ruleSet.enabled !== false,
      rules: [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])].filter(isInForce).length,
    }),
    provisioned: inForce?.some(({ enabled }) => enabled !== false) === true,
    pending_changes: typeof ruleSet?.update_type === 'string',
    conflicts: [
      ...(drafts ?? []).flatMap((one) => (one === ruleSet ? [] : [{ href: one.href, why: 'same_scope' as const }])),
      ...draft.conflicts.map(({ ruleSet: { href }, why }) => ({ href, why })),
    ],
  }
}

/**
 * Numbers of the application's workloads. `modes` counts only managed ones, because the mode of an unmanaged workload
 * has no meaning.
 */
interface Fleet {
  total: number
  managed: number
  modes: Readonly<Record<string, number>>
  offline: number
  /** Number of managed workloads for which the PCE does not say whether they are online. */
  onlineUnknown: number
  /**
   * `kubernetes`: number of Kubernetes workloads among all workloads. `unread`: the reason why they could not be read,
   * or null.
   */
  kubernetes: number
  unread: string | null
}

export interface ReadinessFacts {
  fleet: Fleet
  /** The decisions on all rows of the application. */
  decisions: Decisions
  /** The decisions on rows that leave the application (`outbound`) and on rows that stay inside it (`intra`). */
  outbound: Decisions
  intra: Decisions
  /** The parties from which the application receives traffic. */
  remotes: Remotes
  ringfence: RingfenceState
  reliance: Reliance
}

interface Factor {
  factor: string
  points: number
  max: number
  reason: string
}

type Level = 'ready' | 'partially_ready' | 'not_ready' | 'unknown'

export interface Readiness {
  score: number | null
  level: Level
  /** The reason why there is no score. */
  unscored?: string
  /** The reasons why the application is not ready, whatever its score; empty if there are none. */
  obstacles: string[]
  factors: Factor[]
}

/**
 * Scores the readiness of an application (T20). Without traffic or without a managed workload, there is no score.
 * Whatever its score, an application is not ready if a stricter mode may block traffic that is allowed now, or if it is
 * not known what the mode would block, because Kubernetes workloads or iptables rules have an effect that cannot be
 * determined.
 */
export function scoreReadiness(facts: ReadinessFacts): Readiness {
  const unscored = whyUnscored(facts)
  if (unscored !== null) return { score: null, level: 'unknown', unscored, obstacles: [], factors: [] }
  const factors = [
    coverageFactor(facts),
    ringfenceFactor(facts),
    modeFactor(facts),
    blockedFactor(facts),
    remoteFactor(facts),
  ]
  const score = roundTo1(factors.reduce((sum, { points }) => sum + points, 0))
  const obstacles = findObstacles(facts)
  const level = score >= 80 && obstacles.length === 0 ? 'ready' : score >= 50 ? 'partially_ready' : 'not_ready'
  return { score, level, obstacles, factors: factors.map((factor) => ({ ...factor, points: roundTo1(factor.points) })) }
}

function whyUnscored({ fleet, decisions, reliance }: ReadinessFacts): string | null {
  const none =
    fleet.total === 0
      ? 'No workload has these two labels.'
      : `None of ${countOf(fleet.total, 'workload')} has a VEN, so nothing can be enforced.`
  if (fleet.managed === 0) return [none, ...tellUnread(fleet.unread)].join(' ')
  const { unknown, undecided } = decisions.flows
  if (judged(decisions.flows) > undecided) return null
  if (undecided > 0) return `Of ${countOf(undecided, 'row')} of traffic all are ${reliance.undecided}.`
  return unknown > 0
    ? `Policy decided on none of ${countOf(unknown, 'row')} of traffic.`
    : 'No traffic was seen in the window.'
}

function findObstacles({
  fleet,
  reliance: { byDefault, open, undecided, iptables },
  ringfence: { name, enabled, rules },
}: ReadinessFacts): string[] {
  return [
    fleet.unread === null
      ? ''
      : `Kubernetes workloads could not be read, so their modes are not known: ${fleet.unread}`,
    byDefault > 0 ? `${countOf(byDefault, 'row')} may pass only by default` : '',
    open > 0 ? `${countOf(open, 'row')} ${undecided}` : '',
    enabled === true && rules === 0 ? `${quote(name)} has no enabled rule` : '',
    ...tellIpTables(iptables).map((sentence) => sentence.replace(/\.$/, '')),
  ].filter(Boolean)
}

function coverageFactor({ decisions: { flows } }: ReadinessFacts): Factor {
  const all = judged(flows)
  const doubt = flows.undecided > 0 ? `, ${flows.undecided} undecided` : ''
  const reason = `${flows.allowed} of ${countOf(all, 'row')} allowed (${coverage(flows)} %)${doubt}`
  return { factor: 'policy_coverage', points: (flows.allowed / all) * 40, max: 40, reason }
}

function ringfenceFactor({ ringfence }: ReadinessFacts): Factor {
  const factor = { factor: 'ringfence', max: 20 }
  const { name, enabled, rules, provisioned, conflicts } = ringfence
  if (enabled === true) {
    const flaws = [
      provisioned ? '' : 'not provisioned',
      rules === 0 ? 'without an enabled rule' : '',
      conflicts.some(({ why }) => why === 'same_scope') ? 'more than once with this scope' : '',
    ].filter(Boolean)
    const reason = [`${quote(name)} exists`, ...flaws].join(', ')
    return { ...factor, points: 20, reason }
  }
  if (enabled === false) return { ...factor, points: 0, reason: `${quote(name)} is disabled` }
  const [conflict] = conflicts
  if (conflict === undefined) return { ...factor, points: 0, reason: `no rule set ${quote(name)}` }
  const why = conflict.why === 'other_scope' ? 'has a different scope' : 'is marked for deletion'
  return { ...factor, points: 0, reason: `${quote(name)} ${why}` }
}

function modeFactor({ fleet: { modes, managed, kubernetes } }: ReadinessFacts): Factor {
  const { full = 0, selective = 0, visibility_only: visibility = 0 } = modes
  const points = full === managed ? 20 : selective > 0 ? 10 : visibility > 0 ? 5 : 0
  const reason = Object.entries(modes)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([mode, count]) => `${count} ${mode}`)
    .join(', ')
  return {
    factor: 'enforcement_mode',
    points,
    max: 20,
    reason: `${reason} of ${managed} with a VEN${kubernetes > 0 ? ' or in Kubernetes' : ''}`,
  }
}

function blockedFactor({ decisions: { flows, connections }, reliance: { maybeBlocked } }: ReadinessFacts): Factor {
  const factor = { factor: 'no_blocked_traffic', max: 10 }
  const found = [
    flows.blocked > 0 ? `${countOf(flows.blocked, 'row')} blocked (${countOf(connections.blocked, 'connection')})` : '',
    maybeBlocked.rows > 0 ? `${countOf(maybeBlocked.rows, 'row')} possibly blocked` : '',
  ].filter(Boolean)
  if (found.length === 0) return { ...factor, points: 10, reason: 'nothing blocked' }
  return { ...factor, points: 0, reason: found.join(', ') }
}

function remoteFactor({ remotes: { covered, partlyCovered, uncovered } }: ReadinessFacts): Factor {
  const all = covered.length + partlyCovered.length + uncovered.length
  const reason = `${uncovered.length} of ${countOf(all, 'source app')} uncovered, ${partlyCovered.length} partially covered`
  return { factor: 'no_uncovered_remote_apps', points: uncovered.length === 0 ? 10 : 0, max: 10, reason }
}

const roundTo1 = (value: number): number => Math.round(value * 10) / 10
