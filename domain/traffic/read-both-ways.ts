import type { Label } from '../../schemas/pce/label.js'
import { anything, withLabels } from './applications.js'
import { endColumns } from './columns.js'
import { describeReading, type Reading, type FlowRequest, type FlowReader, type FlowsRead } from './read-flows.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/** The path of a row as seen by the labelled application: into it, out of it, or inside it. */
export type FlowPath = 'inbound' | 'outbound' | 'intra'

/** The two queries, and how many rows were in both answers. */
export interface BothWays {
  inbound: FlowsRead
  outbound: FlowsRead
  repeated: number
}

/**
 * Reads what everything with all of these labels receives and sends, in two queries, and hands every row over once: rows inside it
 * are in both answers. Throws what the reader throws.
 */
export async function readBothWays(
  read: FlowReader,
  encoder: FlowEncoder,
  labels: readonly Label[],
  request: Pick<FlowRequest, 'name' | 'window' | 'draftDecisions'>,
  take: (row: FlowRow, path: FlowPath) => void,
): Promise<BothWays> {
  // Code 0 is null: an end that is not its own.
  const own = endColumns(encoder, (end) => (hasLabels(end, labels) ? 'own' : null))
  // An end may belong to it without its labels, as a virtual service does; then only the query tells.
  const destinations = new Set<number>()
  let repeated = 0
  const inbound = await read(
    { ...request, filters: { sources: anything(), destinations: withLabels(labels) } },
    (row) => {
      destinations.add(row.dst)
      take(row, own.src.code(row) === 0 ? 'inbound' : 'intra')
    },
  )
  const outbound = await read(
    { ...request, filters: { sources: withLabels(labels), destinations: anything() } },
    (row) => {
      if (destinations.has(row.dst)) repeated += row.count
      // Inside it, yet the first answer had no row to this destination: it was cut off, or this flow is new.
      else take(row, own.dst.code(row) === 0 ? 'outbound' : 'intra')
    },
  )
  return { inbound, outbound, repeated }
}

/** Whether an end has all of these labels. */
export const hasLabels = (end: FlowEnd, labels: readonly Label[]): boolean =>
  labels.every(({ key, value }) => Object.hasOwn(end.labels, key) && end.labels[key] === value)

/**
 * The completeness of both queries together, each row counted once. Observations are given only when no row was in both answers,
 * because the PCE does not say how many of them a repeated row stands for.
 */
export function describeBothWays({ inbound, outbound, repeated }: BothWays): Reading {
  const { analysed, ...reading } = describeReading(inbound, outbound)
  const { raw_observations: raw, ...rest } = analysed
  return {
    ...reading,
    analysed: {
      ...rest,
      pce_flows: analysed.pce_flows - repeated,
      rows: analysed.rows - repeated,
      ...(repeated === 0 && raw !== undefined && { raw_observations: raw }),
    },
  }
}
