import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { anything, applicationColumns, applicationOf, withLabels, type Application } from '../traffic/applications.js'
import { dashed, endColumn, portColumn, protocolColumn, textColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createFlowReader, type FlowsRead } from '../traffic/read-flows.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { EndMode } from './judge-flow.js'

/** Inbound traffic that nothing in a plan tells apart. */
export interface InboundFlow {
  source: FlowEnd
  /** Null unless the source has both labels. */
  application: Application | null
  sourceMode: EndMode
  destination: EndMode
  port: number | null
  /** IANA number. */
  proto: number | null
  decision: string
  draft: string | null
  hasDraftRules: boolean
  connections: number
}

/** Outbound traffic to an application, or to anything that is none. */
export interface OutboundFlow {
  application: Application | null
  destination: FlowEnd
  sourceMode: EndMode
  hasDraftRules: boolean
  port: number | null
  proto: number | null
  decision: string
  connections: number
}

/** What was seen of an application in the window. The flows are made while they are iterated. */
export interface Discovery {
  inbound: Iterable<InboundFlow>
  outbound: Iterable<OutboundFlow>
  reads: { inbound: FlowsRead; outbound: FlowsRead }
}

const MODES: readonly string[] = ['idle', 'visibility_only', 'selective', 'full']

/** The mode in which an end enforces policy; an address and an unmanaged workload enforce none. */
export const modeOf = ({ workload, managed, mode }: FlowEnd): EndMode =>
  workload === null || !managed ? 'none' : MODES.includes(mode ?? '') ? (mode as EndMode) : 'unknown'

/**
 * Reads the traffic to and from an application, every decision (T15). `modes` has those of its workloads, for rows that do not say.
 * `outboundRules`: the rules of outbound traffic are needed too, which takes the PCE longer. Throws what the reader throws.
 */
export async function discoverFlows(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits'>,
  labels: LabelIndex,
  application: readonly Label[],
  window: TrafficWindow,
  modes: ReadonlyMap<string, string | null>,
  outboundRules: boolean,
): Promise<Discovery> {
  const encoder = createFlowEncoder(labels)
  const read = createFlowReader(ctx, encoder)
  const service = { port: portColumn, proto: protocolColumn, decision: dashed(textColumn(encoder, 'decision')) }
  const hasDraftRules = { code: ({ rules }: FlowRow) => Math.min(rules, 1), value: (code: number) => code === 1 }
  const inbound = groupRows({
    ...service,
    source: wholeEndColumn(encoder, 'src'),
    // What has the labels and is no workload (a virtual service) may be enforced anywhere.
    destination: endColumn(encoder, 'dst', (end) =>
      end.workload === null ? 'unknown' : modeOf({ ...end, mode: end.mode ?? modes.get(end.workload) ?? null }),
    ),
    draft: textColumn(encoder, 'draftDecision'),
    hasDraftRules,
  })
  const outbound = groupRows({
    ...service,
    application: applicationColumns(encoder).dst,
    destination: wholeEndColumn(encoder, 'dst'),
    source: endColumn(encoder, 'src', (end) =>
      modeOf({ ...end, mode: end.mode ?? (end.workload === null ? null : (modes.get(end.workload) ?? null)) }),
    ),
    hasDraftRules,
  })
  const own = withLabels(application)
  const into = { sources: anything(), destinations: own }
  const outOf = { sources: own, destinations: anything() }
  const reads = {
    inbound: await read(
      { name: 'mcp-ringfence-inbound', window, filters: into, draftDecisions: true },
      (row) => void inbound.add(row),
    ),
    outbound: await read(
      { name: 'mcp-ringfence-outbound', window, filters: outOf, draftDecisions: outboundRules },
      (row) => void outbound.add(row),
    ),
  }
  return {
    reads,
    inbound: mapped(inbound, ({ keys, measures: { connections } }) => ({
      ...keys,
      destination: (keys.destination ?? 'unknown') as EndMode,
      application: applicationOf(keys.source),
      sourceMode: modeOf(keys.source),
      connections,
    })),
    outbound: mapped(outbound, ({ keys, measures: { connections } }) => ({
      ...keys,
      sourceMode: (keys.source ?? 'unknown') as EndMode,
      connections,
    })),
  }
}

const mapped = <T, U>(items: Iterable<T>, map: (item: T) => U): Iterable<U> => ({
  *[Symbol.iterator]() {
    for (const item of items) yield map(item)
  },
})
