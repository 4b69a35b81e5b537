import { runsOnColumn, textColumn, type Column } from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { groupRows, type Group } from './group-rows.js'
import type { Measures } from './measures.js'
import type { FlowService } from './summarize-flows.js'

const DESTINATIONS_PER_PROCESS = 10
const USERS_PER_PROCESS = 5

interface ProcessDestination extends FlowService {
  to: string
  connections: number
  process_runs_on: 'destination' | 'source'
}

export interface ProcessSummary extends Measures {
  process: string
  destination_count: number
  /** Rows `destinations` would have without its limit. */
  destinations_total: number
  destinations: ProcessDestination[]
  user_count: number
  users: string[]
}

/** Rows that name a process, by process (tools contract, B1). */
export interface ProcessSummaries {
  add(row: FlowRow): void
  /** Distinct process names. */
  readonly size: number
  /** Most connections first. Every count is of the whole; destinations and users are the first few. */
  busiest(limit: number): ProcessSummary[]
}

type DestinationColumns = {
  to: Column<string>
  port: Column<number | null>
  proto: Column<string>
  policy: Column<string>
}

/** `columns`: what makes a destination of a process one row. */
export function summarizeProcesses(encoder: FlowEncoder, columns: DestinationColumns): ProcessSummaries {
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
