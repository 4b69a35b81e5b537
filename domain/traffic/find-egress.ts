import type { Steps } from '../text/work-in-turns.js'
import {
  dashed,
  derivedColumn,
  endColumn,
  portColumn,
  protocolNameColumn,
  runsOnColumn,
  textColumn,
} from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { endpointLabel } from './flow-end.js'
import { groupRows } from './group-rows.js'
import { groupWithParts, type GroupWithParts } from './group-with-parts.js'
import { providerColumn, rankProcesses, rankProviders, type EgressProcess, type EgressProvider } from './rank-egress.js'

/** Which rows count. */
export interface EgressChoice {
  /** Parts of process paths, any case; empty: every process. */
  processes: readonly string[]
  includeInbound: boolean
  /** Leave out rows without process. */
  onlyNamed: boolean
}

/** Rows left after each step, in this order; `without_process` of those with an external destination name no process. */
export interface EgressSteps {
  outbound_rows: number
  with_external_destination: number
  without_process: number
  /** What is analysed in the end. */
  egress_rows: number
}

type EgressKeys = {
  /** Base name; `-` where the row has none. */
  process: string
  destination: string
  dst_ip: string
  hostname: string | null
  fqdn: string | null
  port: number | null
  proto: string
  policy_decision: string
  rule: string | null
  process_runs_on: 'destination' | 'source'
}
export type EgressGroup = GroupWithParts<EgressKeys, { user: string | null; source: string | null }>

/** Of rows that leave for destinations this PCE does not manage (tools contract, B3). Rollups are of everything. */
export interface Egress {
  steps: EgressSteps
  findings: { total: number; groups: EgressGroup[] }
  /** Those that are named, most destinations first. */
  processes: { total: number; rows: EgressProcess[] }
  /** Most processes first. */
  providers: EgressProvider[]
}

/** `finish`: `limit` bounds the findings, most connections first; of processes those that an answer can show are made. */
export function createEgressFinder(
  encoder: FlowEncoder,
  { processes: wanted, includeInbound, onlyNamed }: EgressChoice,
): { add(row: FlowRow): void; finish(limit: number): Steps<Egress> } {
  const inbound = encoder.dictionaries.direction.code('inbound')
  const parts = wanted.map((part) => part.toLowerCase())
  const path = textColumn(encoder, 'process')
  const isWanted = derivedColumn(path, (text) => {
    const name = text?.toLowerCase()
    return parts.some((part) => name?.includes(part)) ? 'wanted' : null
  })
  const external = endColumn(encoder, 'dst', ({ managed }) => (managed ? null : 'external'))
  const name = derivedColumn(path, (text) => text && baseName(text))
  const process = dashed(name)
  const destination = dashed(endColumn(encoder, 'dst', endpointLabel))
  const provider = providerColumn(encoder)
  const findings = groupWithParts<EgressKeys, { user: string | null; source: string | null }>(
    {
      process,
      destination,
      dst_ip: dashed(endColumn(encoder, 'dst', ({ ip }) => ip)),
      hostname: endColumn(encoder, 'dst', ({ hostname }) => hostname),
      fqdn: endColumn(encoder, 'dst', ({ fqdn }) => fqdn),
      port: portColumn,
      proto: dashed(protocolNameColumn),
      policy_decision: dashed(textColumn(encoder, 'decision')),
      rule: textColumn(encoder, 'rules'),
      process_runs_on: runsOnColumn(encoder),
    },
    {
      user: textColumn(encoder, 'user'),
      source: endColumn(encoder, 'src', ({ workload, ip }) => workload ?? ip),
    },
  )
  const targets = groupRows({ process, destination })
  const names = groupRows({ process })
  const attributed = groupRows({ provider, process: name })
  const steps = { outbound_rows: 0, with_external_destination: 0, without_process: 0, egress_rows: 0 }

  return {
    add(row) {
      if (row.direction === inbound && !includeInbound) return
      steps.outbound_rows++
      if (external.code(row) === 0) return
      steps.with_external_destination++
      if (row.process === 0) steps.without_process++
      if (parts.length > 0 ? isWanted.code(row) === 0 : onlyNamed && row.process === 0) return
      steps.egress_rows++
      findings.add(row)
      if (row.process !== 0) {
        targets.add(row)
        names.add(row)
      }
      if (provider.code(row) !== 0) attributed.add(row)
    },
    *finish(limit) {
      const busiest = findings.busiest(limit)
      yield
      const ranked = yield* rankProcesses(names, targets)
      yield
      return { steps, findings: busiest, processes: ranked, providers: rankProviders(attributed) }
    },
  }
}

function baseName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== '') ?? path
}
