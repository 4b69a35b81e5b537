import { compareTexts } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import {
  dashed,
  derivedColumn,
  endColumn,
  portColumn,
  protocolNameColumn,
  runsOnColumn,
  textColumn,
  endColumns,
  type Column,
} from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { fileName } from './file-name.js'
import { endpointLabel, seenFromOutside } from './flow-ends.js'
import { groupRows, groupWithParts, type GroupWithParts, type Grouping } from './group-rows.js'
import { firstByName, pickTop } from './group-tables.js'
import { findProvider, type Attribution } from './providers/find-provider.js'

/** The criteria by which rows are selected as egress traffic. */
export interface EgressChoice {
  /** Strings to look for in process paths, ignoring case. An empty list selects every process. */
  processes: readonly string[]
  includeInbound: boolean
  /** If true, rows without a process name are left out. */
  onlyNamed: boolean
}

/**
 * Number of rows left after each step of the selection, in the order of the steps. `without_process` is not a step, but
 * the number of rows with an external destination and no process name.
 */
interface EgressSteps {
  /** Number of rows whose process is among the requested processes. */
  wanted_rows: number
  outbound_rows: number
  with_external_destination: number
  without_process: number
  /** Number of rows that remain after all steps and are analysed. */
  egress_rows: number
}

type EgressKeys = {
  /** The file name of the process; `-` if the row names no process. */
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
export type EgressGroup = GroupWithParts<EgressKeys, { user: string | null; source: string | null }> & {
  otherNames: OtherNames
}

/**
 * Further FQDNs of a finding's destination address: how many there are, and the busiest of them. They come from other
 * traffic in the same time window.
 */
interface OtherNames {
  total: number
  names: readonly string[]
}

/**
 * The traffic to destinations that this PCE does not manage (T14). The lists of processes and providers cover all of
 * this traffic, even if only some of the findings are shown.
 */
export interface Egress {
  steps: EgressSteps
  findings: { total: number; groups: EgressGroup[] }
  /** The processes that have a name, those with the most destinations first. */
  processes: { total: number; rows: EgressProcess[] }
  /** The providers, those with the most processes first. */
  providers: EgressProvider[]
}

/**
 * Creates the finder of egress traffic. `limit` is the number of findings to return, those with the most connections
 * first. The number of processes is limited to what fits into an answer. At most `named` destinations are listed for a
 * process, and at most `named` processes for a provider, but all of them are counted.
 */
export function createEgressFinder(
  encoder: FlowEncoder,
  { processes: wanted, includeInbound, onlyNamed }: EgressChoice,
): { add(row: FlowRow): void; finish(limit: number, named: number): Steps<Egress> } {
  const inbound = encoder.dictionaries.direction.code('inbound')
  const parts = wanted.map((part) => part.toLowerCase())
  const path = textColumn(encoder, 'process')
  const isWanted = derivedColumn(path, (text) => {
    const name = text?.toLowerCase()
    return parts.some((part) => name?.includes(part)) ? 'wanted' : null
  })
  const external = endColumn(encoder, 'dst', (end) =>
    end.managed || seenFromOutside(end) !== null ? null : 'external',
  )
  const name = derivedColumn(path, (text) => text && fileName(text))
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
  const reached = groupRows({ provider, destination })
  const ip = endColumn(encoder, 'dst', (end) => end.ip)
  const fqdn = endColumn(encoder, 'dst', (end) => end.fqdn)
  // Many hosts may share one address, such as that of a CDN, but each flow contains at most one host name. Therefore
  // the names are collected from all flows.
  const known = groupRows({ ip, fqdn })
  const steps = { wanted_rows: 0, outbound_rows: 0, with_external_destination: 0, without_process: 0, egress_rows: 0 }

  return {
    add(row) {
      const isOther = parts.length > 0 && isWanted.code(row) === 0
      const isCounted = row.direction !== inbound || includeInbound
      if (isCounted && fqdn.code(row) !== 0 && external.code(row) !== 0) known.add(row)
      if (isOther) return
      steps.wanted_rows += row.count
      if (!isCounted) return
      steps.outbound_rows += row.count
      if (external.code(row) === 0) return
      steps.with_external_destination += row.count
      if (row.process === 0) steps.without_process += row.count
      if (onlyNamed && row.process === 0) return
      steps.egress_rows += row.count
      findings.add(row)
      if (row.process !== 0) {
        targets.add(row)
        names.add(row)
      }
      if (provider.code(row) === 0) return
      attributed.add(row)
      reached.add(row)
    },
    *finish(limit, named) {
      const { total, groups } = findings.busiest(limit)
      yield
      const shown = new Set<string | null>(groups.map(({ keys }) => keys.dst_ip))
      const namesOf = known.busiestWithin('ip', shown, MOST_NAMES + 1)
      const withNames = groups.map((group) => ({ ...group, otherNames: otherNames(group, namesOf) }))
      yield
      const ranked = yield* rankProcesses(names, targets, named)
      yield
      return {
        steps,
        findings: { total, groups: withNames },
        processes: ranked,
        providers: rankProviders(attributed, reached, named),
      }
    },
  }
}

type Names = ReturnType<Grouping<{ ip: string | null; fqdn: string | null }>['busiestWithin']>

function otherNames({ keys }: { keys: EgressKeys }, known: Names): OtherNames {
  const { total, groups } = known.get(keys.dst_ip) ?? { total: 0, groups: [] }
  const names = groups.flatMap((group) => group.keys.fqdn ?? []).filter((name) => name !== keys.fqdn)
  return { total: keys.fqdn === null ? total : total - 1, names: names.slice(0, MOST_NAMES) }
}

/** Maximum number of additional FQDNs shown for each address. */
const MOST_NAMES = 5

/** Maximum number of processes that fit into an answer (see showSections). */
const MOST_ROWS = 2_000

/** Maximum number of destinations shown per process. */
const MOST_DESTINATIONS = 20

/** Maximum number of processes shown per provider. */
const MOST_PROCESSES = 50

/** Maximum number of hosts shown per provider. */
const MOST_HOSTS = 10

/** A process with its number of destinations; the busiest of them are listed in alphabetical order. */
export interface EgressProcess {
  process: string
  destination_count: number
  external_destinations: string[]
}

/**
 * A provider to which traffic goes, with the number of processes that connect to it and the alphabetically first of
 * them.
 */
export interface EgressProvider {
  provider: string
  provider_confidence: Attribution['confidence']
  connections: number
  process_count: number
  processes: string[]
  destination_count: number
  /** The provider's destinations, those with the most connections first. */
  destinations: string[]
}

/**
 * Ranks processes by their number of destinations. Returns the total number of processes, and the highest-ranked ones,
 * as many as fit into an answer.
 */
function* rankProcesses(
  names: Grouping<{ process: string }>,
  targets: Grouping<{ process: string; destination: string }>,
  named: number,
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
  const destinations = targets.busiestWithin('process', new Set(processes), Math.min(named, MOST_DESTINATIONS))
  const rows = processes.map((process) => ({
    process,
    destination_count: counts.get(process) ?? 0,
    external_destinations: (destinations.get(process)?.groups ?? []).map(({ keys }) => keys.destination).sort(),
  }))
  return { total, rows }
}

/**
 * Ranks providers by the number of processes that connect to them, over all destinations whose provider is known. The
 * processes of each provider are listed in alphabetical order; rows without a process name do not count as a process.
 */
function rankProviders(
  groups: Grouping<{ provider: Attribution | null; process: string | null }>,
  reached: Grouping<{ provider: Attribution | null; destination: string }>,
  named: number,
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
  const hosts = reached.busiestWithin('provider', new Set(providers.keys()), Math.min(named, MOST_HOSTS))
  return [...providers]
    .map(([attribution, { connections, processes }]) => ({
      provider: attribution.provider,
      provider_confidence: attribution.confidence,
      connections,
      process_count: processes.length,
      processes: firstByName(processes, Math.min(named, MOST_PROCESSES)),
      destination_count: hosts.get(attribution)?.total ?? 0,
      destinations: hosts.get(attribution)?.groups.map(({ keys }) => keys.destination) ?? [],
    }))
    .sort((a, b) => b.process_count - a.process_count || compareTexts(a.provider, b.provider))
}

/**
 * Creates a column for the provider whose address range contains the destination. The provider is looked up once per
 * distinct destination. Code 0 (null) means that the provider is unknown.
 */
function providerColumn(encoder: FlowEncoder): Column<Attribution | null> {
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
