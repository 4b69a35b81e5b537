import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { Type, type Static } from '@sinclair/typebox'
import type { Preview, ToolContext } from '../../../domain/call.js'
import {
  bodyOf,
  planRequests,
  type ModeOutcome,
  type ModesSet,
  type WorkloadOutcome,
} from '../../../domain/enforcement/set-modes.js'
import { PceError } from '../../../pce-client/index.js'
import type { ChosenWorkload, ChosenWorkloads } from '../../../domain/enforcement/choose-workloads.js'
import { changeOfMode } from '../../../domain/enforcement/judge-enforcement.js'
import { withDetails } from '../../../domain/inventory/pce-errors.js'
import { tellLeftOut } from '../../../domain/inventory/kubernetes-workloads.js'
import { capital } from '../../../domain/text/capital.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { describeBothWays } from '../../../domain/traffic/read-both-ways.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { Count, Text, Total } from '../../../schemas/common.js'
import { DryRunOutput } from '../../../schemas/dry-run.js'
import { ToolError } from '../../../schemas/errors.js'
import type { EnforcementMode } from '../../../schemas/pce/enforcement-modes.js'
import { showModeChangesForApproval } from '../approval/show-mode-changes.js'
import { fitAnswer, rowsWithin } from '../byte-budget.js'
import {
  describeChange,
  describeEffect,
  isCut,
  listObstacles,
  nameChosen,
  nameSome,
  noteEnforcement,
  noteReading,
  warnOfEnforcement,
  type Enforcement,
} from './describe-enforcement.js'
import {
  ConnectionsOut,
  NotEnforcedOut,
  SelectionOut,
  showSelection,
  showConnections,
  showTrafficChanges,
  TRAFFIC_COLUMNS,
  TrafficChangesOut,
} from './show-enforcement.js'

const COLUMNS = ['workload', 'href', 'before', 'now', 'outcome', 'note'] as const
/** Maximum number of traffic changes (each is one peer and port) in the answer of a dry run. */
const MOST_TRAFFIC = 25

/** The order of outcomes in an answer: failures first, then workloads that were left out, then successes. */
const ORDER: readonly ModeOutcome[] = [
  'failed',
  'differs',
  'unverified',
  'not_attempted',
  'unmanaged',
  'changed',
  'already_there',
]

const OutcomesOut = Type.Object(
  {
    changed: Count('Are in the mode now, by this call'),
    already_there: Count('Were, and were left alone'),
    unmanaged: Count('Have no VEN, and were left out'),
    failed: Count('The PCE refused'),
    differs: Count('Changed, as the PCE said, and read back in another mode'),
    unverified: Count('The answer was lost, and they did not read back in the mode'),
    not_attempted: Count('Left over where the call ended early'),
  },
  { description: 'Workloads by what became of them' },
)

export const ModesSetOutput = Type.Object({
  message: Text('What happened'),
  enforcement_mode: Text('The one asked for'),
  selection: SelectionOut,
  outcomes: Type.Optional(OutcomesOut),
  workloads_total: Total,
  workload_columns: Type.Array(Type.String(), { description: 'Of workloads; now is as read back' }),
  workloads: Type.Array(Type.Array(Type.Unknown()), { description: 'Each workload, what went wrong first' }),
  not_enforced: NotEnforcedOut,
  connections: Type.Optional(ConnectionsOut),
  traffic_changes_total: TrafficChangesOut.traffic_changes_total,
  traffic_change_columns: TrafficChangesOut.traffic_change_columns,
  traffic_changes: TrafficChangesOut.traffic_changes,
  ...RecordedOut,
  ...AssumesOut,
  window: Type.Optional(Reading.window),
  flows_truncated: Type.Optional(Reading.flows_truncated),
  analysed: Type.Optional(Reading.analysed),
  notes: Type.Optional(Type.Array(Type.String(), { description: 'What this rests on, and what it leaves open' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to check' })),
  ...DryRunOutput,
})
type Output = Static<typeof ModesSetOutput>

type Context = Pick<ToolContext<true>, 'pce' | 'limits'>

/**
 * Builds the answer of a dry run: the requests that a real call would send, and what they would do to observed traffic.
 */
export function showPlannedModes({ pce, limits }: Context, enforcement: Enforcement): Output {
  const { chosen, to, traffic } = enforcement
  const path = `/orgs/${pce.orgId}/workloads/bulk_update`
  const requests = planRequests(chosen, to).map((request) => ({ method: 'PUT', path, body: bodyOf(request, to) }))
  const isRead = typeof traffic !== 'string'
  const changes = isRead ? showTrafficChanges(traffic.changes.slice(0, MOST_TRAFFIC), chosen.workloads) : []
  return fitAnswer(
    {
      message: [describeChange(enforcement, 'would be set to'), describeEffect(enforcement)].filter(Boolean).join(' '),
      dry_run: true,
      enforcement_mode: to,
      selection: showSelection(enforcement),
      ...(isRead && {
        connections: showConnections(traffic),
        traffic_changes_total: traffic.changes.length,
        traffic_change_columns: [...TRAFFIC_COLUMNS],
        traffic_changes: changes,
      }),
      not_enforced: listObstacles(chosen.workloads),
      workloads_total: chosen.workloads.length,
      workload_columns: [...COLUMNS],
      workloads: sortOutcomes(chosen.workloads.map((workload) => ({ workload, outcome: planned(workload, to) }))),
      requests,
      notes: noteEnforcement(enforcement),
      warnings: warnOfEnforcement(enforcement),
      ...(isRead && showRecorded(traffic.recorded)),
      ...(isRead && showAssumed(traffic.assumes)),
      ...(isRead && describeBothWays(traffic.reads)),
    },
    limits,
  )
}

function planned(workload: ChosenWorkload, to: EnforcementMode): string {
  const change = changeOfMode(workload, to)
  return change === 'none' ? 'unmanaged' : change === 'already' ? 'already_there' : 'would_change'
}

/**
 * Builds the answer with the outcome for each workload. Throws if the PCE refused the changes of all workloads, or if
 * writing stopped before all were changed. The error's details list the completed changes, because the error alone
 * would suggest that nothing was changed.
 */
export function showModesSet(
  { limits }: Pick<Context, 'limits'>,
  { chosen, to }: Pick<Enforcement, 'chosen' | 'to'>,
  { outcomes, stopped }: ModesSet,
): Output {
  const counts = Object.fromEntries(ORDER.map((outcome) => [outcome, 0])) as Record<ModeOutcome, number>
  for (const { outcome } of outcomes) counts[outcome] += 1
  const left = counts.not_attempted + counts.failed + counts.unverified + counts.differs
  const unread = outcomes.filter(({ outcome, now }) => outcome === 'changed' && now === undefined).length
  const isLost = stopped !== null && left === 0
  const show = (rows: readonly WorkloadOutcome[], warnings: readonly string[]) => ({
    message: describeOutcome(chosen, to, counts),
    enforcement_mode: to,
    selection: showSelection({ chosen, to }),
    outcomes: counts,
    not_enforced: listObstacles(chosen.workloads),
    workloads_total: rows.length,
    workload_columns: [...COLUMNS],
    workloads: sortOutcomes(rows),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  })
  const isAccepted = stopped instanceof PceError && stopped.isAccepted
  if (stopped === null || (isLost && isAccepted)) {
    const answer = show(outcomes, [
      ...(isLost ? ["The PCE's answer could not be read; read back, all of it is done."] : []),
      ...(unread > 0
        ? [`${countOf(unread, 'workload')} could not be read back: changed is what the PCE answered.`]
        : []),
      ...(counts.changed > 0 ? warnOfObstacles(chosen) : []),
      ...tellLeftOut(chosen.leftOut),
    ])
    const isRefused = counts.failed > 0 && counts.failed === left && counts.changed === 0
    if (!isRefused) return fitAnswer(answer, limits)
    const { message, ...details } = fitAnswer(answer, limits)
    const isRead = outcomes.every(({ outcome, now }) => outcome !== 'failed' || now !== undefined)
    throw new ToolError('pce_error', message, details, { hint: isRead ? `${REFUSED} Nothing was changed.` : REFUSED })
  }
  if (isLost) throw withDetails(stopped, { read_back: { state: 'as_sent' }, outcomes: counts }, AS_SENT)
  const { message, ...details } = show(
    outcomes.filter(({ outcome }) => outcome !== 'changed'),
    [],
  )
  const written = outcomes.flatMap(({ outcome, workload: { href } }) => (outcome === 'changed' ? [{ href }] : []))
  const partial = written.length > 0 ? { partial: true, written } : {}
  throw withDetails(stopped, fitAnswer({ summary: message, ...partial, ...details }, limits), GO_ON)
}

const AS_SENT = 'Read back, all of them are in the mode: the change was made.'
const GO_ON =
  'What `written` names is in the new mode; `workloads` says what became of the rest. Repeating the call goes on with those.'
const REFUSED = 'The PCE refused every workload, each for the reason in its note.'

function warnOfObstacles(chosen: ChosenWorkloads): string[] {
  return listObstacles(chosen.workloads)
    .filter(({ reason }) => reason !== 'unmanaged')
    .map(({ meaning, workloads_total: total }) => `Of ${countOf(total, 'workload')}: ${meaning}`)
}

function describeOutcome(chosen: ChosenWorkloads, to: EnforcementMode, counts: Record<ModeOutcome, number>): string {
  const { changed, already_there: already, unmanaged, failed, differs, unverified, not_attempted: left } = counts
  const isOne = chosen.application === null && chosen.workloads.length === 1
  const none = isOne ? `${nameChosen(chosen)} had no mode` : `no workload of ${nameChosen(chosen)} had a mode`
  const head =
    changed + failed + differs + unverified + left === 0
      ? `Nothing was written: ${none} to change.`
      : isOne && changed === 0
        ? `${capital(nameChosen(chosen))} is not known to be in ${to}.`
        : `Set ${nameSome(chosen, changed)} to ${to}.`
  return [
    head,
    failed > 0 ? `${failed} failed.` : '',
    differs > 0 ? `${differs} read back in another mode.` : '',
    unverified > 0 ? `Of ${unverified} it is not known.` : '',
    left > 0 ? `${left} were not attempted.` : '',
    already > 0 ? `${already} ${already === 1 ? 'was' : 'were'} in ${to} already.` : '',
    unmanaged > 0
      ? `${unmanaged} ${unmanaged === 1 ? 'has' : 'have'} no VEN and ${unmanaged === 1 ? 'was' : 'were'} left out.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

type Row = Omit<WorkloadOutcome, 'outcome'> & { outcome: string }

function sortOutcomes(outcomes: readonly Row[]): unknown[][] {
  const rank = ({ outcome }: Row) => (ORDER as readonly string[]).indexOf(outcome)
  return [...outcomes]
    .sort((a, b) => rank(a) - rank(b))
    .map(({ workload: { name, href, isManaged, mode }, now, outcome, note }) => [
      name,
      href,
      isManaged ? (mode ?? 'unknown') : null,
      now ?? null,
      outcome,
      note ?? null,
    ])
}

/** Maximum size, in bytes, of one list in a preview. It is enough to recognise what the list contains. */
const LIST_BYTES = 2500

/**
 * Describes, for the person who confirms the call, the modes that it would set and the traffic that they would cut or
 * open.
 */
export function previewModes(enforcement: Enforcement, isDryRun: boolean): Omit<Preview, 'boundTo'> {
  const { chosen, to, traffic } = enforcement
  const changing = planRequests(chosen, to).flat()
  const dry = isDryRun ? 'This is a dry run: it only shows what a real call would send.' : ''
  const names = rowsWithin(
    changing.map(({ name, href, mode }) => [name, href, mode ?? 'unknown']),
    LIST_BYTES,
  )
  const changes = typeof traffic === 'string' ? [] : showTrafficChanges(traffic.changes, chosen.workloads)
  const shown = rowsWithin(changes, LIST_BYTES)
  const when = changing.length === 0 ? '' : 'It takes effect at once, without provisioning.'
  return {
    summary: [describeChange(enforcement, 'would be set to'), describeEffect(enforcement), when, dry]
      .filter(Boolean)
      .join(' '),
    details: {
      enforcement_mode: to,
      selection: showSelection(enforcement),
      ...(typeof traffic !== 'string' && {
        connections: showConnections(traffic),
        traffic_change_columns: [...TRAFFIC_COLUMNS],
        traffic_changes: shown,
        ...(shown.length < changes.length && { traffic_changes_left_out: changes.length - shown.length }),
        flows_truncated: isCut(traffic),
        ...showRecorded(traffic.recorded),
        ...showAssumed(traffic.assumes),
      }),
      not_enforced: listObstacles(chosen.workloads),
      workload_columns: ['workload', 'href', 'mode'],
      workloads: names,
      ...(names.length < changing.length && { workloads_left_out: changing.length - names.length }),
      notes: [...noteEnforcement(enforcement), ...noteReading(enforcement)],
      look_closer: 'The same call with dry_run shows each workload and the busiest traffic.',
    },
    page: showModeChangesForApproval(enforcement),
  }
}
