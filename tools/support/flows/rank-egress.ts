import { findProvider, type Attribution } from '../providers/find-provider.js'
import { endColumns, type Column } from './columns.js'
import type { FlowEncoder } from './encode-flow.js'
import type { Grouping } from './group-rows.js'

/** Destinations named per process. */
const MOST_DESTINATIONS = 20

/** Processes named per provider. */
const MOST_PROCESSES = 50

/** A process and where it goes: how many destinations, and the busiest of them in alphabetical order. */
export interface EgressProcess {
  process: string
  destination_count: number
  external_destinations: string[]
}

/** A range of addresses somebody publishes, and the processes that talk to it: how many, and the first of them. */
export interface EgressProvider {
  provider: string
  provider_confidence: Attribution['confidence']
  connections: number
  process_count: number
  processes: string[]
}

/** Of all processes, most destinations first. */
export function rankProcesses(
  names: Grouping<{ process: string }>,
  targets: Grouping<{ process: string; destination: string }>,
): EgressProcess[] {
  const processes = [...names].map(({ keys }) => keys.process)
  const destinations = targets.busiestWithin('process', new Set(processes), MOST_DESTINATIONS)
  return processes
    .map((process) => ({
      process,
      destination_count: destinations.get(process)?.total ?? 0,
      external_destinations:
        destinations
          .get(process)
          ?.groups.map(({ keys }) => keys.destination)
          .sort() ?? [],
    }))
    .sort((a, b) => b.destination_count - a.destination_count || byText(a.process, b.process))
}

/** Of all attributed destinations, most processes first; processes in alphabetical order. */
export function rankProviders(
  groups: Iterable<{ keys: { provider: Attribution | null; process: string }; measures: { connections: number } }>,
): EgressProvider[] {
  const providers = new Map<Attribution, { connections: number; processes: string[] }>()
  for (const { keys, measures } of groups) {
    if (keys.provider === null) continue
    const known = providers.get(keys.provider) ?? { connections: 0, processes: [] }
    known.connections += measures.connections
    known.processes.push(keys.process)
    providers.set(keys.provider, known)
  }
  return [...providers]
    .map(([{ provider, confidence }, { connections, processes }]) => ({
      provider,
      provider_confidence: confidence,
      connections,
      process_count: processes.length,
      processes: processes.sort().slice(0, MOST_PROCESSES),
    }))
    .sort((a, b) => b.process_count - a.process_count || byText(a.provider, b.provider))
}

/** Who publishes the range that a destination lies in; looked up once per distinct end. Code 0 (null): nobody. */
export function providerColumn(encoder: FlowEncoder): Column<Attribution | null> {
  const found = new Map<string, Attribution>()
  const { dst } = endColumns(encoder, ({ ip }) => {
    const attribution = ip === null ? null : findProvider(ip)
    if (attribution === null) return null
    const name = `${attribution.provider} ${attribution.confidence}`
    if (!found.has(name)) found.set(name, attribution)
    return name
  })
  return { code: dst.code, value: (code) => found.get(dst.value(code) ?? '') ?? null }
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
