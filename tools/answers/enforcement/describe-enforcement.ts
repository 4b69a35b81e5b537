import {
  OBSTACLES,
  type ChosenWorkload,
  type ChosenWorkloads,
  type Obstacle,
} from '../../../domain/enforcement/choose-workloads.js'
import {
  changeOfMode,
  type ChangeOfMode,
  type EnforcementTraffic,
  type TrafficChange,
} from '../../../domain/enforcement/judge-enforcement.js'
import { tellLeftOut } from '../../../domain/inventory/kubernetes-workloads.js'
import { capital } from '../../../domain/text/capital.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { coverageNote } from '../../../domain/traffic/read-flows.js'
import { explainRecorded } from '../../../schemas/recorded-otherwise.js'
import { meaningOf, type EnforcementMode } from '../../../schemas/pce/enforcement-modes.js'

/**
 * A requested change of enforcement mode, and its effect on observed traffic or the reason why the effect is not known.
 */
export interface Enforcement {
  chosen: ChosenWorkloads
  to: EnforcementMode
  /** The time window of the traffic, as a phrase. */
  period: string
  traffic: EnforcementTraffic | string
}

/** Counts workloads by what the change does to their mode. */
export function countChanges({ workloads }: ChosenWorkloads, to: EnforcementMode): Record<ChangeOfMode, number> {
  const counts = { stricter: 0, looser: 0, same_traffic: 0, not_known: 0, already: 0, none: 0 }
  for (const workload of workloads) counts[changeOfMode(workload, to)] += 1
  return counts
}

export const countChanging = (counts: Record<ChangeOfMode, number>): number =>
  counts.stricter + counts.looser + counts.same_traffic + counts.not_known

/** Counts managed workloads by present enforcement mode, the most frequent mode first. */
export function countPresentModes(workloads: readonly ChosenWorkload[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { isManaged, mode } of workloads) {
    if (isManaged) counts.set(mode ?? 'unknown', (counts.get(mode ?? 'unknown') ?? 0) + 1)
  }
  return Object.fromEntries([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)))
}

/**
 * Returns a phrase for the chosen application or workloads, such as `"pay (prod)"`, `3 named workloads` or `the
 * workload "web-1"`.
 */
export const nameChosen = ({ application, workloads }: ChosenWorkloads): string => {
  if (application !== null) return quote(`${application.is.app} (${application.is.env})`)
  return workloads.length === 1
    ? `the workload ${quote((workloads[0] as ChosenWorkload).name)}`
    : countOf(workloads.length, 'named workload')
}

/**
 * Returns a phrase for `count` of the chosen workloads, such as `2 of 3 workloads of "pay (prod)"`, `2 of 3 named
 * workloads` or `the workload "web-1"`.
 */
export function nameSome(chosen: ChosenWorkloads, count: number): string {
  const { application, workloads } = chosen
  if (application === null && workloads.length === 1) return nameChosen(chosen)
  if (application === null) return `${count} of ${nameChosen(chosen)}`
  return `${count} of ${countOf(workloads.length, 'workload')} of ${nameChosen(chosen)}`
}

/**
 * Returns the sentence that no mode changes: `No workload of "pay (prod)" changes its mode`, or `The workload "web-1"
 * does not change its mode`.
 */
function tellUnchanged(chosen: ChosenWorkloads): string {
  const { application, workloads } = chosen
  if (application !== null) return `No workload of ${nameChosen(chosen)} changes its mode.`
  return workloads.length === 1
    ? `${capital(nameChosen(chosen))} does not change its mode.`
    : `None of ${nameChosen(chosen)} changes its mode.`
}

/**
 * Describes the change of modes: `2 of 3 workloads of "pay (prod)" would go to full: 2 from visibility_only. 1 is there
 * already.`
 */
export function describeChange({ chosen, to }: Pick<Enforcement, 'chosen' | 'to'>, verb: string): string {
  const counts = countChanges(chosen, to)
  const changing = countChanging(counts)
  const { workloads } = chosen
  const from = countPresentModes(workloads.filter(({ mode }) => mode !== to))
  const origin = Object.entries(from).map(([mode, count]) => `${count} from ${mode}`)
  return [
    changing === 0
      ? tellUnchanged(chosen)
      : `${capital(nameSome(chosen, changing))} ${verb} ${to}: ${origin.join(', ')}.`,
    counts.already > 0 ? `${counts.already} ${counts.already === 1 ? 'is' : 'are'} in ${to} already.` : '',
    counts.none > 0 ? `${counts.none} ${counts.none === 1 ? 'has' : 'have'} no VEN and no mode to change.` : '',
  ]
    .filter(Boolean)
    .join(' ')
}

const readsOf = ({ reads }: EnforcementTraffic) => [reads.inbound, reads.outbound]

/** Returns true if not all traffic was read, so that counts are lower bounds. */
export const isCut = (traffic: EnforcementTraffic): boolean => readsOf(traffic).some(({ truncated }) => truncated)

/**
 * Describes the effect on traffic in one or two sentences. If not all traffic was read, they call the counts lower
 * bounds.
 */
export function describeEffect({ chosen, to, period, traffic }: Enforcement): string {
  if (typeof traffic === 'string') return traffic
  const counts = countChanges(chosen, to)
  if (countChanging(counts) === 0) return ''
  const { connections, changes } = traffic
  const seen = `the traffic seen in ${period}`
  if (readsOf(traffic).every(({ rows }) => rows === 0)) return `No traffic was seen in ${period} to judge it by.`
  const least = isCut(traffic) ? 'at least ' : ''
  const peersOf = (...kinds: readonly string[]) =>
    countOf(new Set(changes.filter(({ effect }) => kinds.includes(effect)).map(({ peer }) => peer)).size, 'peer')
  const { cut, possibly_cut: maybeCut, opened, possibly_opened: maybeOpened } = connections
  const parts = [
    cut + maybeCut > 0
      ? `${least}${countOf(cut, 'connection')} would be cut and ${maybeCut} possibly, with ${peersOf('cut', 'possibly_cut')}`
      : counts.stricter > 0
        ? 'nothing would be cut'
        : '',
    opened + maybeOpened > 0
      ? `${least}${countOf(opened, 'connection')} blocked now would pass and ${maybeOpened} possibly, with ${peersOf('opened', 'possibly_opened')}`
      : counts.looser > 0
        ? 'nothing is blocked now that would pass'
        : '',
  ].filter((text) => text !== '')
  if (parts.length === 0 && counts.not_known > 0) return `Of ${seen}, nothing is known to change.`
  if (parts.length === 0) return `Of ${seen}, nothing changes: neither mode blocks anything.`
  return `Of ${seen}, ${parts.join('; ')}.`
}

/** Returns sentences that explain how the effect was determined and what about it is uncertain. */
export function noteEnforcement({ chosen, to, period, traffic }: Enforcement): string[] {
  const { workloads } = chosen
  const idle = workloads.filter(({ isManaged, mode }) => isManaged && mode === 'idle').length
  return [
    meaningOf(to),
    'A mode takes effect at once, without provisioning.',
    ...(typeof traffic === 'string'
      ? []
      : [
          `Judged by the policy in force and the traffic of ${period}: what was not seen then, and drafts that are not provisioned, are not judged.`,
          traffic.connections.possibly_cut + traffic.connections.possibly_opened > 0
            ? `What is only possible is ${traffic.undecided}.`
            : '',
          traffic.connections.stays_undecided > 0 ? `stays_undecided: because of ${traffic.undecidedStays}.` : '',
          ...traffic.reads.modes,
          explainRecorded(traffic.recorded),
        ]),
    idle > 0 && to !== 'idle'
      ? `${idle} ${idle === 1 ? 'is' : 'are'} idle, where VENs report little of their traffic: more may change than was seen.`
      : '',
  ].filter((text) => text !== '')
}

/** Returns sentences that say whether all traffic was read, for answers without the field `analysed.note`. */
export const noteReading = ({ traffic }: Enforcement): string[] =>
  typeof traffic === 'string' ? [] : [coverageNote(...readsOf(traffic))].filter((text) => text !== '')

/** Lists, by reason, the workloads that will not, or not yet, enforce the new mode. */
export function listObstacles(workloads: readonly ChosenWorkload[]) {
  const found = new Map<Obstacle, string[]>()
  for (const { obstacle, name } of workloads) {
    if (obstacle === null) continue
    const names = found.get(obstacle) ?? []
    found.set(obstacle, names)
    names.push(name)
  }
  return (Object.keys(OBSTACLES) as Obstacle[]).flatMap((reason) => {
    const names = found.get(reason)
    if (names === undefined) return []
    const shown = names.slice(0, MOST_NAMED)
    return [{ reason, meaning: `${OBSTACLES[reason]}.`, workloads_total: names.length, workloads: shown }]
  })
}

const MOST_NAMED = 10

/**
 * Returns warnings about what makes the described effect incomplete or uncertain, and about workloads that were left
 * out.
 */
export function warnOfEnforcement(enforcement: Enforcement): string[] {
  const { chosen, traffic } = enforcement
  const { workloads } = chosen
  const untold = workloads.filter(({ obstacle }) => obstacle === 'not_known').length
  const absent = workloads.filter(({ obstacle }) => obstacle !== null && obstacle !== 'unmanaged').length - untold
  const modeless = countChanges(chosen, enforcement.to).not_known
  return [
    typeof traffic === 'string' && countChanging(countChanges(chosen, enforcement.to)) > 0 ? traffic : '',
    typeof traffic !== 'string' && isCut(traffic)
      ? 'Not all of the traffic was read: more may be cut or opened than is said here.'
      : '',
    absent > 0
      ? `The mode is not enforced, or not yet, on ${countOf(absent, 'workload')} whose VEN is offline or not active.`
      : '',
    untold > 0 ? `Whether the VEN of ${countOf(untold, 'workload')} is online is not known.` : '',
    modeless > 0
      ? `The PCE does not tell the present mode of ${countOf(modeless, 'workload')}: whether the new one is stricter or looser there is not known.`
      : '',
    ...tellLeftOut(chosen.leftOut),
  ].filter((text) => text !== '')
}

/**
 * Describes one traffic change: `"crm (prod)" on 5432/tcp, inbound: 30 connections`. `shown` is the peer's name: in
 * quotation marks if it is for a sentence, and without them if it is for a field of a page.
 */
export const describeTrafficChange = (
  { peer, port, direction, connections }: TrafficChange,
  shown = quote(peer),
): string => `${shown} on ${port}, ${direction}: ${countOf(connections, 'connection')}`
