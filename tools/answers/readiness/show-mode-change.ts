import { showAssumed } from '../../../schemas/assumes.js'
import { explainRecorded, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { isEnforcing } from '../../../schemas/pce/enforcement-modes.js'
import type { ModeChange } from '../../../domain/policy/judge-mode.js'
import { type ModeChangeTraffic, MODE_CHANGE_DAYS } from '../../../domain/readiness/judge-mode-change.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { describeBothWays } from '../../../domain/traffic/read-both-ways.js'
import { coverageNote } from '../../../domain/traffic/read-flows.js'

const MOST_PEERS = 20
const MOST_PORTS = 10

/**
 * Describes what a change of enforcement mode would do, for a dry run (D78). `scope` has sentences that name the
 * workloads whose traffic was read, and is empty if these are obvious.
 */
export function showModeChange(change: ModeChange, traffic: ModeChangeTraffic | string, scope: string[] = []) {
  const head = { ...change, takes_effect: 'at once, without provisioning' }
  if (typeof traffic === 'string') {
    return { effect: { ...head, traffic: null, note: [traffic, ...scope].join(' ') }, warnings: [traffic] }
  }
  const { reads, connections, losses, undecided, undecidedStays } = traffic
  const { window, flows_truncated: isTruncated, analysed } = describeBothWays(reads)
  const shown = losses
    .slice(0, MOST_PEERS)
    .map(({ ports, ...loss }) => ({ ...loss, ports: ports.slice(0, MOST_PORTS) }))
  const notes = [
    ...scope,
    `Judged by the policy in force and the traffic of the last ${MODE_CHANGE_DAYS} days; traffic that was not seen then, and drafts that are not provisioned, are not judged.`,
    analysed.rows === 0 ? 'No traffic was seen, which says nothing about what would be cut.' : '',
    connections.possibly_cut > 0
      ? `possibly_cut is ${undecided}.`
      : connections.possibly_blocked !== undefined
        ? `possibly_blocked is ${undecided}.`
        : '',
    connections.undecided !== undefined
      ? `undecided: unaffected by the mode change; whether they pass depends on ${undecidedStays}.`
      : '',
    ...reads.modes,
    explainRecorded(traffic.recorded),
    coverageNote(reads.inbound, reads.outbound),
  ]
  return {
    effect: {
      ...head,
      traffic: {
        window,
        flows_truncated: isTruncated,
        rows: analysed.rows,
        ...(analysed.parts !== undefined && { parts: analysed.parts }),
        connections,
        ...showRecorded(traffic.recorded),
        would_be_cut: shown,
        would_be_cut_total: losses.length,
      },
      note: notes.filter(Boolean).join(' '),
      ...showAssumed(traffic.assumes),
    },
    warnings: [warn(change, traffic, analysed.rows, isTruncated)],
  }
}

/** Returns a sentence about the most serious effect on traffic. */
function warn(
  { to }: ModeChange,
  { connections, losses, opened }: ModeChangeTraffic,
  rows: number,
  isTruncated: boolean,
): string {
  const { cut, possibly_cut: possibly } = connections
  if (!isEnforcing(to)) {
    return `${to} enforces nothing: whatever policy blocks here alone would pass${opened > 0 ? `, such as ${countOf(opened, 'connection')} blocked now` : ''}.`
  }
  if (rows === 0) return `Mode ${to} takes effect at once, and no traffic was seen to judge it by.`
  if (cut + possibly === 0) return `Mode ${to} takes effect at once; none of the traffic that was seen would be cut.`
  const least = isTruncated ? 'at least ' : ''
  const peers = countOf(new Set(losses.map(({ peer }) => peer)).size, 'peer')
  return `Mode ${to} takes effect at once: of the traffic that was seen, ${least}${countOf(cut, 'connection')} would be cut and ${possibly} possibly, with ${peers}.`
}
