import type { Label } from '../../schemas/pce/label.js'
import { anything, withLabels } from './applications.js'
import { endColumns } from './columns.js'
import { describeReading, type Reading, type FlowRequest, type FlowReader, type FlowsRead } from './read-flows.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'

/** The direction of a row as seen from the labelled application: into it, out of it, or within it. */
export type FlowPath = 'inbound' | 'outbound' | 'intra'

/** The results of the inbound and the outbound query, and the number of rows that both results contain. */
export interface BothWays {
  inbound: FlowsRead
  outbound: FlowsRead
  repeated: number
}

/**
 * Reads all traffic to and from the workloads with the given labels, in two queries. Both answers contain the traffic
 * within the application, but every row is passed on only once.
 * @throws the errors of the reader.
 */
export async function readBothWays(
  read: FlowReader,
  encoder: FlowEncoder,
  labels: readonly Label[],
  request: Pick<FlowRequest, 'name' | 'window' | 'draftDecisions' | 'prepare'>,
  take: (row: FlowRow, path: FlowPath) => void,
): Promise<BothWays> {
  // Code 0 (null) marks a source or destination that is not part of the application.
  const own = endColumns(encoder, (end) => (hasLabels(end, labels) ? 'own' : null))
  // An end such as a virtual service may belong to the application without having its labels. Only the answer to the
  // inbound query shows this, so the destinations in that answer are remembered.
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
      if (destinations.has(row.dst)) repeated += row.reports
      // If the destination has the labels but was not in the first answer, the flow still stays within the application:
      // the first answer was incomplete, or the flow is new.
      else take(row, own.dst.code(row) === 0 ? 'outbound' : 'intra')
    },
  )
  return { inbound, outbound, repeated }
}

/** Returns true if a source or destination has all of these labels. */
export const hasLabels = (end: FlowEnd, labels: readonly Label[]): boolean =>
  labels.every(({ key, value }) => Object.hasOwn(end.labels, key) && end.labels[key] === value)

/**
 * Describes how complete the two queries are taken together; a row that both returned counts once. The number of raw
 * observations is given only if no row was returned twice, because the PCE does not say how many observations a row
 * combines.
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
