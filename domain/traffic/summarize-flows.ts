import { isStopped, POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import {
  dashed,
  endColumn,
  endColumns,
  portColumn,
  protocolNameColumn,
  textColumn,
  runsOnColumn,
  type Column,
} from './columns.js'
import { createDimensionWatch, type AvailableDimensions } from './dimensions.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { endpointIdentity, endpointLabel, seenFromOutside } from './flow-ends.js'
import { groupRows, type Grouping, type Group } from './group-rows.js'
import type { Measures } from './group-tables.js'

/** The service (port and protocol) of a group of traffic rows, and the policy decision on these rows. */
interface FlowService {
  port: number | null
  proto: string
  policy: string
}
type ExternalSummary = { process: string; to: string } & FlowService & Measures
type BlockedSummary = { process: string; from: string; to: string } & FlowService & Measures
type AppToApp = { from: string; to: string; policy: string } & Measures

export interface Sections {
  by_process: ProcessSummary[]
  external_destinations: ExternalSummary[]
  blocked: BlockedSummary[]
  app_to_app: AppToApp[]
}
export type SectionName = keyof Sections
export const SECTION_NAMES = [
  'by_process',
  'external_destinations',
  'blocked',
  'app_to_app',
] as const satisfies readonly SectionName[]

export interface FlowSummary {
  distinctProcesses: number
  /** For each section, the rows with the most connections, up to the row limit of the call. */
  sections: Sections
  /** For each section, the total number of rows. */
  sectionTotals: Record<SectionName, number>
  dimensions: AvailableDimensions
}

/**
 * Creates a collector that sorts rows into the four sections of a summary (T12) in one pass. `finish` builds at most
 * `limit` rows for each wanted section and none for the others, because building rows blocks the event loop.
 */
export function createFlowSummary(
  encoder: FlowEncoder,
  identityLabels: readonly string[],
): { add: (row: FlowRow) => void; finish(limit: number, isWanted: (section: SectionName) => boolean): FlowSummary } {
  const process = dashed(textColumn(encoder, 'process'))
  const policy = dashed(textColumn(encoder, 'decision'))
  const label = endColumns(encoder, endpointLabel)
  const to = dashed(label.dst)
  const service = { port: portColumn, proto: dashed(protocolNameColumn), policy }
  const identity = endColumns(encoder, (end) => endpointIdentity(end, identityLabels))
  const external = endColumn(encoder, 'dst', (end) =>
    (end.managed && end.hostname !== null) || seenFromOutside(end) !== null ? null : 'external',
  )
  const blocked = POLICY_DECISIONS.filter(isStopped).map((decision) => encoder.dictionaries.decision.code(decision))

  const processes = summarizeProcesses(encoder, { to, ...service })
  const toExternal = groupRows({ process, to, ...service })
  const beingBlocked = groupRows({ process, from: dashed(label.src), to, ...service })
  const betweenApps = groupRows({ from: dashed(identity.src), to: dashed(identity.dst), policy })
  const dimensions = createDimensionWatch(encoder)

  return {
    add(row) {
      dimensions.see(row)
      if (row.process !== 0) processes.add(row)
      if (external.code(row) !== 0) toExternal.add(row)
      if (blocked.includes(row.decision)) beingBlocked.add(row)
      if (identity.src.code(row) !== identity.dst.code(row)) betweenApps.add(row)
    },
    finish: (limit, isWanted) => ({
      distinctProcesses: processes.size,
      sections: {
        by_process: isWanted('by_process') ? processes.busiest(limit) : [],
        external_destinations: isWanted('external_destinations') ? busiest(toExternal, limit) : [],
        blocked: isWanted('blocked') ? busiest(beingBlocked, limit) : [],
        app_to_app: isWanted('app_to_app') ? busiest(betweenApps, limit) : [],
      },
      sectionTotals: {
        by_process: processes.size,
        external_destinations: toExternal.size,
        blocked: beingBlocked.size,
        app_to_app: betweenApps.size,
      },
      dimensions: dimensions.available(),
    }),
  }
}

function busiest<K extends object>(grouping: Grouping<K>, limit: number): (K & Measures)[] {
  return grouping.busiest(limit).groups.map(({ keys, measures }) => ({ ...keys, ...measures }))
}

const DESTINATIONS_PER_PROCESS = 10
const USERS_PER_PROCESS = 5

interface ProcessDestination extends FlowService {
  to: string
  connections: number
  process_runs_on: 'destination' | 'source'
}

interface ProcessSummary extends Measures {
  process: string
  destination_count: number
  /** Number of all destinations, including those left out of `destinations` because of the limit. */
  destinations_total: number
  destinations: ProcessDestination[]
  user_count: number
  users: string[]
}

/** The rows that have a process name, summarised by process (T12). */
interface ProcessSummaries {
  add(row: FlowRow): void
  /** The number of distinct process names. */
  readonly size: number
  /**
   * Returns the processes with the most connections. All their connections are counted, but only the first few
   * destinations and users of each process are listed.
   */
  busiest(limit: number): ProcessSummary[]
}

type DestinationColumns = {
  to: Column<string>
  port: Column<number | null>
  proto: Column<string>
  policy: Column<string>
}

/**
 * Creates the summary by process.
 * @param columns the columns that distinguish the destinations of a process.
 */
function summarizeProcesses(encoder: FlowEncoder, columns: DestinationColumns): ProcessSummaries {
  const process = textColumn(encoder, 'process')
  const processes = groupRows({ process })
  const destinations = groupRows({ process, ...columns, process_runs_on: runsOnColumn(encoder) })
  const endpoints = groupRows({ process, to: columns.to })
  const users = groupRows({ process, user: textColumn(encoder, 'user') })

  return {
    add(row) {
      processes.add(row)
      destinations.add(row)
      endpoints.add(row)
      if (row.user !== 0) users.add(row)
    },
    get size() {
      return processes.size
    },
    busiest(limit) {
      const { groups } = processes.busiest(limit)
      const names = new Set(groups.map(({ keys }) => keys.process))
      const targets = destinations.busiestWithin('process', names, DESTINATIONS_PER_PROCESS)
      const ends = endpoints.busiestWithin('process', names, 0)
      const people = users.busiestWithin('process', names, Infinity)
      return groups.map(({ keys: { process: name }, measures }) => ({
        process: name as string,
        ...measures,
        destination_count: ends.get(name)?.total ?? 0,
        destinations_total: targets.get(name)?.total ?? 0,
        destinations: targets.get(name)?.groups.map(showDestination) ?? [],
        user_count: people.get(name)?.total ?? 0,
        users: firstUsers(people.get(name)?.groups.map(({ keys }) => keys.user as string) ?? []),
      }))
    },
  }
}

const firstUsers = (names: string[]) => names.sort().slice(0, USERS_PER_PROCESS)

function showDestination({ keys, measures }: Group<Omit<ProcessDestination, 'connections'>>): ProcessDestination {
  const { to, port, proto, policy, process_runs_on: runsOn } = keys
  return { to, port, proto, policy, connections: measures.connections, process_runs_on: runsOn }
}
