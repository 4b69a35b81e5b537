import type { FlowRow } from './flow-rows.js'
import { addRow, groupFlows, noMeasures, pickBusiest, type Groups, type Measures } from './group-flows.js'

const DESTINATIONS_PER_PROCESS = 10
const USERS_PER_PROCESS = 5

/** What was spoken, and what the policy says to it. */
export interface FlowService {
  port: number | null
  proto: string
  policy: string
}

interface ProcessDestination extends FlowService {
  to: string
  process_runs_on: 'destination' | 'source'
}
interface ProcessGroup {
  measures: Measures
  users: Set<string>
  endpoints: Set<string>
  destinations: Groups<ProcessDestination>
}

export interface ProcessSummary extends Measures {
  process: string
  destination_count: number
  /** Rows `destinations` would have without its limit. */
  destinations_total: number
  destinations: Omit<ProcessDestination & Measures, 'bytes_in' | 'bytes_out' | 'first_detected' | 'last_detected'>[]
  user_count: number
  users: string[]
}
/** Rows that name a process, by process (tools contract, B1). */
export interface ProcessSummaries {
  add(process: string, destination: FlowService & { to: string }, row: FlowRow): void
  /** Distinct process names. */
  readonly size: number
  /** Most connections first. Every count is of the whole; destinations and users are the first few. */
  busiest(limit: number): ProcessSummary[]
}

export function summarizeProcesses(): ProcessSummaries {
  const processes = new Map<string, ProcessGroup>()
  return {
    add(process, destination, row) {
      let group = processes.get(process)
      if (group === undefined) {
        group = { measures: noMeasures(), users: new Set(), endpoints: new Set(), destinations: groupFlows() }
        processes.set(process, group)
      }
      addRow(group.measures, row)
      group.endpoints.add(destination.to)
      if (row.user_name !== null) group.users.add(row.user_name)
      // A process is seen by the end that reports the flow: the listener for inbound records.
      const runsOn = row.flow_direction === 'inbound' ? 'destination' : 'source'
      group.destinations.add({ ...destination, process_runs_on: runsOn }, row)
    },
    get size() {
      return processes.size
    },
    busiest: (limit) =>
      pickBusiest(processes, limit, ({ measures }) => measures.connections).map(([process, group]) =>
        showProcess(process, group),
      ),
  }
}

function showProcess(process: string, { measures, users, endpoints, destinations }: ProcessGroup): ProcessSummary {
  return {
    process,
    ...measures,
    destination_count: endpoints.size,
    destinations_total: destinations.size,
    destinations: destinations
      .busiest(DESTINATIONS_PER_PROCESS)
      .map(({ to, port, proto, policy, connections, process_runs_on: runsOn }) => ({
        to,
        port,
        proto,
        policy,
        connections,
        process_runs_on: runsOn,
      })),
    user_count: users.size,
    users: [...users].sort().slice(0, USERS_PER_PROCESS),
  }
}
