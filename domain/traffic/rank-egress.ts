import type { Steps } from '../text/work-in-turns.js'
import { findProvider, type Attribution } from './providers/find-provider.js'
import { endColumns, type Column } from './columns.js'
import type { FlowEncoder } from './encode-flow.js'
import { compareTexts } from '../text/compare-values.js'
import { firstByName } from './first-by-name.js'
import type { Grouping } from './group-rows.js'
import { pickTop } from './pick-top.js'

/** Processes that an answer has room for at most (see showSections). */
const MOST_ROWS = 2_000

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

/** Most destinations first: how many processes there are, and as many of them as an answer shows at most. */
export function* rankProcesses(
  names: Grouping<{ process: string }>,
  targets: Grouping<{ process: string; destination: string }>,
): Steps<{ total: number; rows: EgressProcess[] }> {
  const counts = new Map<string, number>()
  for (let target = 0; target < targets.size; target++) {
    const process = targets.value(target, 'process')
    counts.set(process, (counts.get(process) ?? 0) + 1)
  }
  yield
  const all = Array.from({ length: names.size }, (_, number) => names.value(number, 'process'))
  const { total, top } = pickTop(
    names.size,
    MOST_ROWS,
    0,
    (number) => counts.get(all[number] as string) ?? 0,
    (a, b) => compareTexts(all[a] as string, all[b] as string),
  )
  yield
  const processes = top.map((number) => all[number] as string)
  const destinations = targets.busiestWithin('process', new Set(processes), MOST_DESTINATIONS)
  const rows = processes.map((process) => ({
    process,
    destination_count: counts.get(process) ?? 0,
    external_destinations: (destinations.get(process)?.groups ?? []).map(({ keys }) => keys.destination).sort(),
  }))
  return { total, rows }
}

/** Of all attributed destinations, most processes first; processes in alphabetical order, rows that name none aside. */
export function rankProviders(
  groups: Grouping<{ provider: Attribution | null; process: string | null }>,
): EgressProvider[] {
  const providers = new Map<Attribution, { connections: number; processes: string[] }>()
  for (let number = 0; number < groups.size; number++) {
    const provider = groups.value(number, 'provider')
    if (provider === null) continue
    const known = providers.get(provider) ?? { connections: 0, processes: [] }
    known.connections += groups.connections(number)
    const process = groups.value(number, 'process')
    if (process !== null) known.processes.push(process)
    providers.set(provider, known)
  }
  return [...providers]
    .map(([{ provider, confidence }, { connections, processes }]) => ({
      provider,
      provider_confidence: confidence,
      connections,
      process_count: processes.length,
      processes: firstByName(processes, MOST_PROCESSES),
    }))
    .sort((a, b) => b.process_count - a.process_count || compareTexts(a.provider, b.provider))
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
