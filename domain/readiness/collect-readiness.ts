import { applicationColumns, nameEnd, type Application } from '../traffic/applications.js'
import { endColumn, portColumn, protocolColumn, textColumn, wholeEndColumn, type Side } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { isUncovered, readWord, tallyDecisions } from './tally-decisions.js'

/** Number of flows that are listed individually (T20). */
const LISTED_FLOWS = 20

export type ReadinessTraffic = ReturnType<ReturnType<typeof collectReadiness>['result']>

/**
 * Collects the facts that determine the readiness of an application. Each row of its traffic is added once, after the
 * rules have decided about it.
 */
export function collectReadiness(encoder: FlowEncoder) {
  const tally = tallyDecisions(encoder)
  const paths = { outbound: tallyDecisions(encoder), intra: tallyDecisions(encoder) }
  const remotes = judgeRemotes(encoder, 'src')
  const uncovered = listUncovered(encoder)
  return {
    take: (row: FlowRow, path: FlowPath): void => {
      tally.add(row)
      if (path === 'inbound') remotes.add(row)
      else paths[path].add(row)
      uncovered.add(row, path)
    },
    result: () => ({
      decisions: tally.result(),
      outbound: paths.outbound.result(),
      intra: paths.intra.result(),
      remotes: remotes.result(),
      uncovered: uncovered.busiest(LISTED_FLOWS),
    }),
  }
}

/**
 * A source or destination without an app or env label. It belongs to no application, so no rule for applications can
 * cover it.
 */
export interface UnlabelledEnd {
  endpoint: string
  ip: string | null
  kind: 'unlabelled' | 'half_labelled'
  /** Numbers of rows (`flows`) and connections of this party, except those about which policy cannot decide. */
  flows: number
  connections: number
  /**
   * Number of rows in `flows` that no rule is known to allow. `uncovered_connections` is the number of their
   * connections.
   */
  uncovered_flows: number
  uncovered_connections: number
}

/**
 * The parties with which an application exchanges traffic, grouped by how much of this traffic policy allows.
 * Applications are sorted by name.
 */
export interface Remotes {
  /** Applications all of whose rows are allowed. Rows about which policy cannot decide do not count. */
  covered: Application[]
  /** Applications with both allowed and not allowed rows, or with undecided ones. */
  partlyCovered: Application[]
  /** Applications with no allowed row. */
  uncovered: Application[]
  /** Parties without an application, those with the most uncovered connections first. */
  unlabelled: UnlabelledEnd[]
}

/**
 * Groups the sources (or destinations) of rows by whether policy allows their traffic. Rows between two ends that
 * enforce nothing are ignored, because policy cannot decide about them.
 */
export function judgeRemotes(encoder: FlowEncoder, side: Side): { add(row: FlowRow): void; result(): Remotes } {
  const application = applicationColumns(encoder)[side]
  const decision = textColumn(encoder, 'decision')
  const applications = groupRows({ application, decision })
  const ends = groupRows({ end: wholeEndColumn(encoder, side), decision })
  return {
    add(row) {
      // Code 0 means that this end belongs to no application.
      if (application.code(row) === 0) ends.add(row)
      else applications.add(row)
    },
    result() {
      const seen = new Map<string, Application & { allowed: boolean; stopped: boolean }>()
      for (const { keys } of applications) {
        const is = readWord(keys.decision)
        if (keys.application === null || is === 'unknown') continue
        const { app, env } = keys.application
        const id = JSON.stringify([app, env])
        const remote = seen.get(id) ?? { app, env, allowed: false, stopped: false }
        seen.set(id, remote)
        // An undecided row may be allowed or stopped, so it counts as both.
        if (is !== 'allowed') remote.stopped = true
        if (is === 'allowed' || is === 'undecided') remote.allowed = true
      }
      const sorted = [...seen.values()].sort((a, b) => compare(a.app, b.app) || compare(a.env, b.env))
      const pick = (allowed: boolean, stopped: boolean) =>
        sorted
          .filter((remote) => remote.allowed === allowed && remote.stopped === stopped)
          .map(({ app, env }) => ({ app, env }))
      return {
        covered: pick(true, false),
        partlyCovered: pick(true, true),
        uncovered: pick(false, true),
        unlabelled: foldEnds(ends),
      }
    },
  }
}

function foldEnds(
  groups: Iterable<{
    keys: { end: FlowEnd; decision: string | null }
    rows: number
    measures: { connections: number }
  }>,
) {
  const found = new Map<FlowEnd, UnlabelledEnd>()
  for (const { keys, rows, measures } of groups) {
    const decision = readWord(keys.decision)
    if (decision === 'unknown') continue
    const { end } = keys
    const one = found.get(end) ?? startEnd(end)
    found.set(end, one)
    one.flows += rows
    one.connections += measures.connections
    if (!isUncovered(decision)) continue
    one.uncovered_flows += rows
    one.uncovered_connections += measures.connections
  }
  return [...found.values()].sort(
    (a, b) =>
      b.uncovered_connections - a.uncovered_connections ||
      b.uncovered_flows - a.uncovered_flows ||
      b.connections - a.connections ||
      compare(a.endpoint, b.endpoint) ||
      compare(a.ip ?? '', b.ip ?? ''),
  )
}

function startEnd(end: FlowEnd): UnlabelledEnd {
  const isHalf = end.labels.app !== undefined || end.labels.env !== undefined
  return {
    endpoint: endpointLabel(end),
    ip: end.ip,
    kind: isHalf ? 'half_labelled' : 'unlabelled',
    flows: 0,
    connections: 0,
    uncovered_flows: 0,
    uncovered_connections: 0,
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b))

/** One entry in the list of traffic that no rule is known to allow. */
export interface UncoveredFlow {
  path: FlowPath
  /** The remote party as `app (env)`, or its host name or address if it has no application. */
  remote: string
  port: number | null
  /** IANA protocol number. */
  proto: number | null
  process: string | null
  decision: string
  connections: number
}

const PATHS = { inbound: 'src', outbound: 'dst', intra: 'src' } as const satisfies Record<FlowPath, Side>

/** Groups the traffic that no rule is known to allow by remote party, service, process and decision. */
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
      if (isUncovered(readWord(decision.value(decision.code(row))))) groupsOf[path]?.add(row)
    },
    /** Returns the `limit` groups with the most connections, and the total number of groups. */
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
