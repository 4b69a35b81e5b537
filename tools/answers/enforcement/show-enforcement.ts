import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { Type, type Static } from '@sinclair/typebox'
import type { ChosenWorkload } from '../../../domain/enforcement/choose-workloads.js'
import {
  changeOfMode,
  type EnforcementTraffic,
  type TrafficChange,
} from '../../../domain/enforcement/judge-enforcement.js'
import { describeBothWays } from '../../../domain/traffic/read-both-ways.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { Count, Counts, Text, Total } from '../../../schemas/common.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import type { Limits } from '../../../schemas/config.js'
import { adviseOnRows, Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'
import {
  countChanges,
  countChanging,
  countPresentModes,
  describeChange,
  describeEffect,
  listObstacles,
  noteEnforcement,
  warnOfEnforcement,
  type Enforcement,
} from './describe-enforcement.js'

/** The parts of the answer to preview-enforcement-change. */
export const ENFORCEMENT_PARTS = ['traffic_changes', 'workloads'] as const

/** The columns of the table of traffic that the new mode will, or might, block or allow. */
export const TRAFFIC_COLUMNS = [
  'effect',
  'direction',
  'peer',
  'port',
  'connections',
  'workloads_total',
  'workloads',
] as const
/** Maximum number of workloads named in a row. */
const MOST_NAMED = 5

const WORKLOAD_COLUMNS = [
  'workload',
  'href',
  'mode',
  'change',
  'not_enforced',
  'cut',
  'possibly_cut',
  'opened',
  'possibly_opened',
] as const

export const ConnectionsOut = Type.Object(
  {
    cut: Count('Pass now and would be blocked'),
    opened: Count('Are blocked now and would pass'),
    possibly_cut: Count('Pass now, undecided whether they would be blocked'),
    possibly_opened: Count('Are blocked now, undecided whether they would pass'),
    stays_allowed: Count('Pass now and would pass, whoever allows them'),
    stays_blocked: Count('Are blocked now and would be blocked'),
    stays_undecided: Type.Optional(Count('Unchanged, undecided whether they pass')),
  },
  { description: 'Connections seen, by what becomes of them' },
)

export const SelectionOut = Type.Object(
  {
    workloads: Count('All that were chosen'),
    changing: Count('Whose mode changes'),
    stricter: Count('Of these, to a mode that blocks more'),
    looser: Count('Of these, to a mode that blocks less'),
    already_there: Count('In the mode already'),
    unmanaged: Count('Without a VEN: no mode to change'),
    modes: Counts('Of those with a VEN, by the mode before the change'),
    kubernetes_workloads_left_out: Type.Optional(Count('Of the application, beside those that were chosen')),
  },
  { description: 'Whose mode is asked about' },
)

export const NotEnforcedOut = Type.Array(
  Type.Object({
    reason: Text('unmanaged, ven_suspended, ven_stopped, ven_uninstalled, offline or not_known'),
    meaning: Text('What it comes to'),
    workloads_total: Total,
    workloads: Type.Array(Type.String(), { description: 'The first of them' }),
  }),
  { description: 'Workloads on which no mode is enforced, or not yet, or maybe not' },
)

/** Output fields about traffic changes that both enforcement tools share. */
export const TrafficChangesOut = {
  traffic_changes_total: Type.Optional(Total),
  traffic_change_columns: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Of traffic_changes: direction as the chosen workloads see it, peer the other end',
    }),
  ),
  traffic_changes: Type.Optional(
    Type.Array(Type.Array(Type.Unknown()), {
      description: 'What is cut or opened, by peer and port: certain first, then busiest',
    }),
  ),
}

export const EnforcementOutput = Type.Object({
  message: Text('What would happen'),
  enforcement_mode: Text('The one asked about'),
  selection: SelectionOut,
  connections: Type.Optional(ConnectionsOut),
  ...TrafficChangesOut,
  not_enforced: NotEnforcedOut,
  workloads_total: Total,
  workload_columns: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Of workloads: mode is the present one, the last four are connections that its change makes',
    }),
  ),
  workloads: Type.Optional(
    Type.Array(Type.Array(Type.Unknown()), { description: 'Those whose traffic changes most come first' }),
  ),
  notes: Type.Array(Type.String(), { description: 'What this rests on, and what it leaves open' }),
  warnings: Type.Array(Type.String(), { description: 'What to look at first' }),
  ...RecordedOut,
  ...AssumesOut,
  window: Type.Optional(Reading.window),
  flows_truncated: Type.Optional(Reading.flows_truncated),
  analysed: Type.Optional(Reading.analysed),
  ...SectionsOutput,
  ...Truncation,
})

interface Showing {
  sections: Sections<(typeof ENFORCEMENT_PARTS)[number]>
  detail: 'standard' | 'full'
  limits: Limits
}

/** Builds the answer about the effect of a change of the enforcement mode (T32). */
export function showEnforcement(
  enforcement: Enforcement,
  { sections, detail, limits }: Showing,
): Static<typeof EnforcementOutput> {
  const { chosen, to, traffic } = enforcement
  const isRead = typeof traffic !== 'string'
  const rows = isRead ? showTrafficChanges(traffic.changes, chosen.workloads) : []
  const workloads = listWorkloads(enforcement)
  const envelope = {
    message: [describeChange(enforcement, 'would go to'), describeEffect(enforcement)].filter(Boolean).join(' '),
    enforcement_mode: to,
    selection: showSelection(enforcement),
    ...(isRead && { connections: showConnections(traffic), traffic_changes_total: rows.length }),
    ...(sections.has('traffic_changes') && { traffic_change_columns: [...TRAFFIC_COLUMNS] }),
    not_enforced: listObstacles(chosen.workloads),
    workloads_total: workloads.length,
    ...(sections.has('workloads') && { workload_columns: [...WORKLOAD_COLUMNS] }),
    notes: noteEnforcement(enforcement),
    warnings: warnOfEnforcement(enforcement),
    ...(isRead && showRecorded(traffic.recorded)),
    ...(isRead && showAssumed(traffic.assumes)),
    ...(isRead && describeBothWays(traffic.reads)),
  }
  const lists = {
    traffic_changes: { rows, total: rows.length },
    workloads: { rows: workloads, total: workloads.length },
  }
  const hint = (limit: number, isFull: boolean) =>
    `Lists show at most ${limit} rows; the totals count all. ${adviseOnRows(detail, isFull, 'Name fewer workloads to see the rest.')}`
  return showChosen(sections, envelope, lists, { detail, limits, hint })
}

/** Returns the numbers of connections by effect. `stays_undecided` is left out if it is zero. */
export function showConnections({
  connections: { stays_undecided: open, ...connections },
}: EnforcementTraffic): Static<typeof ConnectionsOut> {
  return { ...connections, ...(open > 0 && { stays_undecided: open }) }
}

export function showSelection({ chosen, to }: Pick<Enforcement, 'chosen' | 'to'>): Static<typeof SelectionOut> {
  const counts = countChanges(chosen, to)
  return {
    workloads: chosen.workloads.length,
    changing: countChanging(counts),
    stricter: counts.stricter,
    looser: counts.looser,
    already_there: counts.already,
    unmanaged: counts.none,
    modes: countPresentModes(chosen.workloads),
    ...(chosen.leftOut.left > 0 && { kubernetes_workloads_left_out: chosen.leftOut.left }),
  }
}

/** Returns rows with the columns of TRAFFIC_COLUMNS. Each row names at most five workloads. */
export function showTrafficChanges(
  changes: readonly TrafficChange[],
  workloads: readonly Pick<ChosenWorkload, 'href' | 'name'>[],
): unknown[][] {
  const names = new Map(workloads.map(({ href, name }) => [href, name]))
  return changes.map(({ effect, direction, peer, port, connections, workloads: hrefs }) => {
    const shown = [...hrefs].map((href) => names.get(href) ?? href).sort()
    return [effect, direction, peer, port, connections, shown.length, shown.slice(0, MOST_NAMED).join(', ')]
  })
}

function listWorkloads({ chosen, to, traffic }: Enforcement): unknown[][] {
  const countsOf = (href: string) => (typeof traffic === 'string' ? undefined : traffic.byWorkload.get(href))
  const rows = chosen.workloads.map((workload) => {
    const counts = countsOf(workload.href)
    const change = changeOfMode(workload, to)
    return { workload, change, counts, weight: weigh(counts), isChanging: change !== 'already' && change !== 'none' }
  })
  // Sorting is stable, so rows with equal weight stay in the order of their names.
  rows.sort((a, b) => b.weight - a.weight || Number(b.isChanging) - Number(a.isChanging))
  return rows.map(({ workload: { name, href, isManaged, mode, obstacle }, change, counts, isChanging }) => {
    const none = typeof traffic === 'string' || !isChanging ? null : 0
    return [
      name,
      href,
      isManaged ? (mode ?? 'unknown') : null,
      change,
      obstacle,
      counts?.cut ?? none,
      counts?.possibly_cut ?? none,
      counts?.opened ?? none,
      counts?.possibly_opened ?? none,
    ]
  })
}

type Weighed = EnforcementTraffic['byWorkload'] extends ReadonlyMap<string, infer C> ? C : never
const weigh = (counts: Weighed | undefined): number =>
  counts === undefined ? 0 : counts.cut + counts.opened + counts.possibly_cut + counts.possibly_opened
