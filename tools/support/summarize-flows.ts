import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { MOST_ROWS_SHOWN } from './fit-sections.js'
import { endpointIdentity, endpointLabel, toFlowRow } from './flow-rows.js'
import { addRow, groupFlows, noMeasures, type Measures } from './group-flows.js'
import type { LabelIndex } from './load-labels.js'
import { protocolName } from './protocols.js'
import { summarizeProcesses, type FlowService, type ProcessSummary } from './summarize-processes.js'
import { createDimensionWatch, type AvailableDimensions } from './traffic-dimensions.js'

/** Where a value is missing the group is called so, as in every traffic answer (A8). */
const MISSING = '-'

export type ExternalSummary = { process: string; to: string } & FlowService & Measures
export type BlockedSummary = { process: string; from: string; to: string } & FlowService & Measures
export type AppToApp = { from: string; to: string; policy: string } & Measures

export interface Sections {
  by_process: ProcessSummary[]
  external_destinations: ExternalSummary[]
  blocked: BlockedSummary[]
  app_to_app: AppToApp[]
}
export type SectionName = keyof Sections
export const SECTION_NAMES: readonly SectionName[] = ['by_process', 'external_destinations', 'blocked', 'app_to_app']

export interface FlowSummary {
  rows: number
  measures: Measures
  distinctProcesses: number
  /** The busiest rows of each section, most connections first, at most `MOST_ROWS_SHOWN`. */
  sections: Sections
  /** Rows each section has in all. */
  sectionTotals: Record<SectionName, number>
  dimensions: AvailableDimensions
}

export interface SummaryOptions {
  identityLabels: readonly string[]
  labels: LabelIndex | null
  /** Leaves a row out; for filters the PCE could not apply. */
  keeps?: (sourceIp: string, destinationIp: string) => boolean
}

/** Adds up flows batch by batch, so that the rows themselves need never be held (tools contract, B1). */
export function createFlowSummary(options: SummaryOptions): {
  add(flows: readonly TrafficFlow[]): void
  finish(): FlowSummary
} {
  const total = noMeasures()
  let rows = 0
  const processes = summarizeProcesses()
  const external = groupFlows<{ process: string; to: string } & FlowService>()
  const blocked = groupFlows<{ process: string; from: string; to: string } & FlowService>()
  const apps = groupFlows<{ from: string; to: string; policy: string }>()
  const dimensions = createDimensionWatch()

  const addFlow = (flow: TrafficFlow) => {
    if (options.keeps?.(flow.src.ip, flow.dst.ip) === false) return
    const row = toFlowRow(flow, options.labels)
    rows++
    addRow(total, row)
    dimensions.see(row)
    const service = {
      port: row.port,
      proto: row.proto === null ? MISSING : protocolName(row.proto),
      policy: row.policy_decision,
    }
    const process = row.process_name ?? MISSING
    const to = endpointLabel(row.dst)
    if (row.process_name !== null) processes.add(row.process_name, { to, ...service }, row)
    if (!row.dst.managed || row.dst.hostname === null) external.add({ process, to, ...service }, row)
    if (row.policy_decision === 'blocked' || row.policy_decision === 'potentially_blocked') {
      blocked.add({ process, from: endpointLabel(row.src), to, ...service }, row)
    }
    const ends = {
      from: endpointIdentity(row.src, options.identityLabels),
      to: endpointIdentity(row.dst, options.identityLabels),
    }
    if (ends.from !== ends.to) apps.add({ ...ends, policy: row.policy_decision }, row)
  }

  return {
    add: (flows) => flows.forEach(addFlow),
    finish: () => ({
      rows,
      measures: total,
      distinctProcesses: processes.size,
      sections: {
        by_process: processes.busiest(MOST_ROWS_SHOWN),
        external_destinations: external.busiest(MOST_ROWS_SHOWN),
        blocked: blocked.busiest(MOST_ROWS_SHOWN),
        app_to_app: apps.busiest(MOST_ROWS_SHOWN),
      },
      sectionTotals: {
        by_process: processes.size,
        external_destinations: external.size,
        blocked: blocked.size,
        app_to_app: apps.size,
      },
      dimensions: dimensions.available(),
    }),
  }
}
