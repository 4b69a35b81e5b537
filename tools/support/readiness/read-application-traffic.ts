import type { Label } from '../../../schemas/pce/label.js'
import type { ToolContext } from '../../define.js'
import { anything, applicationColumns, withLabels, type Application } from '../flows/applications.js'
import type { FlowEncoder, FlowRow } from '../flows/encode-flow.js'
import { createFlowReader, type FlowRequest, type FlowsRead } from '../flows/read-flows.js'

/** Where a row runs, seen from the application: into it, out of it, or inside it. */
export type FlowPath = 'inbound' | 'outbound' | 'intra'

/** The application that its app and its env label, in this order, make. */
export function toApplication([app, env]: readonly Label[]): Application {
  return { app: app?.value ?? '', env: env?.value ?? '' }
}

/**
 * Reads what an application receives and what it sends, in two queries (tools contract, B9), and hands over every row once: what
 * runs inside it is in both answers. Decisions are all asked for, so that what nobody judged can be counted apart.
 * Throws what the flow reader throws.
 */
export async function readApplicationTraffic(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits'>,
  encoder: FlowEncoder,
  labels: readonly Label[],
  request: Pick<FlowRequest, 'name' | 'window' | 'draftDecisions'>,
  take: (row: FlowRow, path: FlowPath) => void,
): Promise<[inbound: FlowsRead, outbound: FlowsRead]> {
  const read = createFlowReader(ctx, encoder)
  const isOwn = ownApplication(encoder, labels)
  // An end may belong to the application without its labels, as a virtual service does: then only the query shows it.
  const destinations = new Set<number>()
  const inbound = await read(
    { ...request, filters: { sources: anything(), destinations: withLabels(labels) } },
    (row) => {
      destinations.add(row.dst)
      take(row, isOwn.src(row) ? 'intra' : 'inbound')
    },
  )
  const outbound = await read(
    { ...request, filters: { sources: withLabels(labels), destinations: anything() } },
    (row) => {
      if (!destinations.has(row.dst) && !isOwn.dst(row)) take(row, 'outbound')
    },
  )
  return [inbound, outbound]
}

function ownApplication(encoder: FlowEncoder, labels: readonly Label[]) {
  const own = toApplication(labels)
  const columns = applicationColumns(encoder)
  const known = new Map<number, boolean>()
  const isOwn = (side: 'src' | 'dst') => (row: FlowRow) => {
    const code = columns[side].code(row)
    let same = known.get(code)
    if (same === undefined) {
      const application = columns[side].value(code)
      known.set(code, (same = application?.app === own.app && application.env === own.env))
    }
    return same
  }
  return { src: isOwn('src'), dst: isOwn('dst') }
}
