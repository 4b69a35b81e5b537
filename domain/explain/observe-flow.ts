import type { ToolContext } from '../call.js'
import type { TrafficSelector } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isKubernetes } from '../inventory/kubernetes-workloads.js'
import { parseHref, toActiveHref } from '../inventory/parse-href.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import { addressesOf } from './find-members.js'
import type { AskedService } from './judge-pair.js'
import type { AskedEnd } from './resolve-end.js'

/**
 * The traffic that was observed for a flow. `decisions` has the number of connections for each decision of the PCE. A
 * conversation that both its ends reported counts once.
 */
export interface Observed {
  read: FlowsRead
  decisions: Record<string, number>
  /** The names of programs as the ends reported them, those with the most connections first. */
  programs: string[]
  /**
   * Workloads that, according to traffic rows, have the requested address, but that the PCE does not list. They may be
   * pods that no longer exist.
   */
  strangers: readonly Stranger[]
}

/** A workload that occurs in traffic rows only. */
export interface Stranger {
  side: 'source' | 'destination'
  address: string
  name: string
  mode: string | null
}

/** Maximum number of rows that are read. They need to show only what was observed, not how often. */
const MOST_ROWS = 10_000
const MOST_PROGRAMS = 5

/**
 * Queries the traffic of one service between a source and a destination in a time window.
 * @throws the errors of reading traffic.
 */
export async function observeFlow(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>,
  name: string,
  labels: LabelIndex,
  ends: { source: AskedEnd; destination: AskedEnd },
  { port, proto }: AskedService,
  window: TrafficWindow,
): Promise<Observed> {
  const encoder = createFlowEncoder(labels)
  const read = createConversationReader(ctx, encoder)
  const { decision, process, windowsService } = encoder.dictionaries
  const decisions: Record<string, number> = {}
  const programs = new Map<string, number>()
  const seen = { source: new Set<number>(), destination: new Set<number>() }
  const side = (end: AskedEnd) => ({ include: selectorsOf(end), exclude: [] })
  const outcome = await read(
    {
      name: `mcp-${name}`,
      window,
      filters: { sources: side(ends.source), destinations: side(ends.destination) },
      services: { include: [{ proto, ...(port !== null && { port }) }], exclude: [] },
      maxResults: MOST_ROWS,
      // A query for an IP list includes the traffic of workloads whose addresses are in the list.
      excludeWorkloadsFromIpListQuery: false,
    },
    (row) => {
      const word = decision.value(row.decision) ?? 'unknown'
      decisions[word] = (decisions[word] ?? 0) + row.connections
      seen.source.add(row.src)
      seen.destination.add(row.dst)
    },
    // The reports of both ends are read, because each end names only its own program.
    (row) => {
      const program = windowsService.value(row.windowsService) ?? process.value(row.process)
      if (program !== null) programs.set(program, (programs.get(program) ?? 0) + row.connections)
    },
  )
  const busiest = [...programs].sort(([, a], [, b]) => b - a).slice(0, MOST_PROGRAMS)
  const strangers = (['source', 'destination'] as const).flatMap((at) =>
    findStranger(
      at,
      ends[at],
      [...seen[at]].map((end) => encoder.ends.end(end)),
    ),
  )
  return { read: outcome, decisions, programs: busiest.map(([program]) => program), strangers }
}

function findStranger(side: Stranger['side'], asked: AskedEnd, seen: readonly FlowEnd[]): Stranger[] {
  if (asked.kind !== 'address' || asked.bearers.length > 0) return []
  const found = seen.find(({ workload }) => workload !== null && parseHref(workload)?.kind !== 'workloads')
  if (found === undefined) return []
  return [{ side, address: asked.address, name: found.name ?? String(found.workload), mode: found.mode }]
}

/**
 * Returns the conditions that select the source or the destination in a traffic query; meeting all conditions of one
 * inner list is enough. A Kubernetes workload is selected by its addresses, because it is not documented whether a
 * traffic query finds it by its href.
 */
function selectorsOf(end: AskedEnd): TrafficSelector[][] {
  switch (end.kind) {
    case 'workload':
      return workloadSelectors(end.workload)
    case 'address':
      return end.workload === null ? [[{ ip_address: end.address }]] : workloadSelectors(end.workload, [end.address])
    case 'labels':
      return [end.labels.map(({ href }) => ({ label: { href } }))]
    case 'ip_list':
      return [[{ ip_list: { href: toActiveHref(end.list.href) } }]]
  }
}

function workloadSelectors(workload: Workload, addresses = addressesOf(workload)): TrafficSelector[][] {
  if (!isKubernetes(workload) || addresses.length === 0) return [[{ workload: { href: workload.href } }]]
  return addresses.map((address) => [{ ip_address: address }])
}
