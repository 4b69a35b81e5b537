import { applicationOf } from '../traffic/applications.js'
import { endColumn, portColumn, protocolColumn, textColumn, type Side } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { isUncovered, toDecision } from './tally-decisions.js'

/** Rows that policy stops or would stop. */
export interface UncoveredFlow {
  path: FlowPath
  /** `app (env)`, else the host or address. */
  remote: string
  port: number | null
  /** IANA number. */
  proto: number | null
  process: string | null
  decision: string
  connections: number
}

const PATHS = { inbound: 'src', outbound: 'dst', intra: 'src' } as const satisfies Record<FlowPath, Side>

/** Collects what policy stops or would stop, by remote, service, process and decision. */
export function listUncovered(encoder: FlowEncoder) {
  const decision = textColumn(encoder, 'decision')
  const paths = Object.entries(PATHS).map(([path, side]) => ({
    path: path as FlowPath,
    groups: groupRows({
      remote: endColumn(encoder, side, nameEnd),
      port: portColumn,
      proto: protocolColumn,
      process: textColumn(encoder, 'process'),
      decision,
    }),
  }))
  const groupsOf = Object.fromEntries(paths.map(({ path, groups }) => [path, groups]))
  return {
    add(row: FlowRow, path: FlowPath): void {
      if (isUncovered(toDecision(decision.value(decision.code(row))))) groupsOf[path]?.add(row)
    },
    /** The `limit` with most connections, and how many there are. */
    busiest(limit: number): { rows: UncoveredFlow[]; total: number } {
      const lists = paths.map(({ path, groups }) => ({ path, ...groups.busiest(limit) }))
      const rows = lists.flatMap(({ path, groups }) =>
        groups.map(({ keys: { remote, ...keys }, measures }) => ({
          path,
          remote: remote ?? 'unknown',
          ...keys,
          decision: keys.decision ?? 'unknown',
          connections: measures.connections,
        })),
      )
      const total = lists.reduce((sum, list) => sum + list.total, 0)
      return { rows: rows.sort((a, b) => b.connections - a.connections).slice(0, limit), total }
    },
  }
}

/** `app (env)`, else the host: two hosts without labels stay two. */
function nameEnd(end: FlowEnd): string {
  const application = applicationOf(end)
  return application === null ? endpointLabel(end) : `${application.app} (${application.env})`
}
