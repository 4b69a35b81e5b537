import type { ToolContext } from '../call.js'
import type { TrafficSelector } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toActiveHref } from '../inventory/parse-href.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createFlowReader, type FlowsRead } from '../traffic/read-flows.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import type { AskedService } from './judge-pair.js'
import type { AskedEnd } from './resolve-end.js'

/**
 * The traffic that was observed for a flow. `decisions` holds the number of connections for each decision of the PCE.
 */
export interface Observed {
  read: FlowsRead
  decisions: Record<string, number>
  /** The names of programs as the reporting end gave them, the busiest first. */
  programs: string[]
}

/** The most rows that are read. The question is what was observed, not how often. */
const MOST_ROWS = 10_000
const MOST_PROGRAMS = 5

/**
 * Queries the traffic of one service between two ends in the last `days` days.
 * @throws whatever reading traffic throws.
 */
export async function observeFlow(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>,
  name: string,
  labels: LabelIndex,
  ends: { source: AskedEnd; destination: AskedEnd },
  { port, proto }: AskedService,
  days: number,
): Promise<Observed> {
  const encoder = createFlowEncoder(labels)
  const read = createFlowReader(ctx, encoder)
  const { decision, process, windowsService } = encoder.dictionaries
  const decisions: Record<string, number> = {}
  const programs = new Map<string, number>()
  const side = (end: AskedEnd) => ({ include: [selectorsOf(end)], exclude: [] })
  const outcome = await read(
    {
      name: `mcp-${name}`,
      window: lookbackWindow(ctx.now(), days),
      filters: { sources: side(ends.source), destinations: side(ends.destination) },
      services: { include: [{ proto, ...(port !== null && { port }) }], exclude: [] },
      maxResults: MOST_ROWS,
      // If a caller asks about an IP list, the workloads in it are included.
      excludeWorkloadsFromIpListQuery: false,
    },
    (row) => {
      const word = decision.value(row.decision) ?? 'unknown'
      decisions[word] = (decisions[word] ?? 0) + row.connections
      const program = windowsService.value(row.windowsService) ?? process.value(row.process)
      if (program !== null) programs.set(program, (programs.get(program) ?? 0) + row.connections)
    },
  )
  const busiest = [...programs].sort(([, a], [, b]) => b - a).slice(0, MOST_PROGRAMS)
  return { read: outcome, decisions, programs: busiest.map(([program]) => program) }
}

function selectorsOf(end: AskedEnd): TrafficSelector[] {
  switch (end.kind) {
    case 'workload':
      return [{ workload: { href: end.workload.href } }]
    case 'address':
      return [end.workload === null ? { ip_address: end.address } : { workload: { href: end.workload.href } }]
    case 'labels':
      return end.labels.map(({ href }) => ({ label: { href } }))
    case 'ip_list':
      return [{ ip_list: { href: toActiveHref(end.list.href) } }]
  }
}
