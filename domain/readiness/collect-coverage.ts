import { readDecision } from '../../schemas/pce/policy-decisions.js'
import { applicationColumns, type Application } from '../traffic/applications.js'
import { portColumn, protocolColumn, textColumn, wholeEndColumn, type Column, type Side } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows, type Group, type Grouping } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { isNotAllowed, isUncovered, readWord, tallyDecisions } from './tally-decisions.js'

/** A draft rule that would allow traffic that is not allowed today, and how much of such traffic there is. */
interface MatchingRule {
  /** Href of the rule, or the name of an essential rule. */
  rule: string
  flows: number
  connections: number
}

export type Coverage = ReturnType<ReturnType<typeof collectCoverage>['result']>
export type PathCoverage = Coverage['inbound']

/**
 * Collects the policy coverage of an application. Each row of its traffic is added once, after the rules have decided
 * about it. A row inside the application counts as inbound, as outbound and as intra.
 */
export function collectCoverage(encoder: FlowEncoder) {
  const decision = textColumn(encoder, 'decision')
  const draft = textColumn(encoder, 'draftDecision')
  const paths = { inbound: coverPath('src'), outbound: coverPath('dst'), intra: coverPath('src') }
  // The totals over all rows. A row counts once here, even if it counts for several directions.
  const overall = { active: tallyDecisions(encoder), draft: tallyDecisions(encoder, 'draftDecision') }
  const matching = groupRows({ rules: textColumn(encoder, 'rules') })

  function coverPath(side: Side) {
    const [active, drafted, uncovered] = [
      tallyDecisions(encoder),
      tallyDecisions(encoder, 'draftDecision'),
      collectUncovered(encoder, side),
    ]
    return {
      add(row: FlowRow, isOpen: boolean) {
        active.add(row)
        drafted.add(row)
        if (isOpen) uncovered.add(row)
      },
      result: (own: Application, hasDraft: boolean) => ({
        decisions: active.result(),
        draft: hasDraft ? drafted.result() : null,
        uncovered: uncovered.result(own, hasDraft),
      }),
    }
  }

  return {
    take: (row: FlowRow, path: FlowPath): void => {
      const word = readWord(decision.value(decision.code(row)))
      const isOpen = isUncovered(word)
      overall.active.add(row)
      overall.draft.add(row)
      paths[path].add(row, isOpen)
      if (path === 'intra') {
        paths.inbound.add(row, isOpen)
        paths.outbound.add(row, isOpen)
      }
      // Undecided rows do not count, because it is not known whether the draft would change anything for them.
      if (isNotAllowed(word) && readDecision(draft.value(draft.code(row))) === 'allowed') matching.add(row)
    },
    /** `hasRules` is false if the PCE did not report which draft rules match. */
    result: (own: Application, { hasDraft, hasRules }: { hasDraft: boolean; hasRules: boolean }) => ({
      inbound: paths.inbound.result(own, hasDraft),
      outbound: paths.outbound.result(own, hasDraft),
      intra: paths.intra.result(own, hasDraft),
      overall: { decisions: overall.active.result(), draft: hasDraft ? overall.draft.result() : null },
      rules: hasDraft && hasRules ? countRules(matching) : [],
      /** Number of rows that are certainly not allowed now and that the draft would allow. */
      wouldAllow: [...matching].reduce((sum, { rows }) => sum + rows, 0),
    }),
  }
}

/**
 * Adds up the rows that each draft rule matches. A row may match several rules, whose names the encoder joins with
 * commas (T8).
 */
function countRules(
  groups: Iterable<{ keys: { rules: string | null }; rows: number; measures: { connections: number } }>,
) {
  const found = new Map<string, MatchingRule>()
  for (const { keys, rows, measures } of groups) {
    for (const rule of keys.rules?.split(', ') ?? []) {
      const one = found.get(rule) ?? { rule, flows: 0, connections: 0 }
      found.set(rule, one)
      one.flows += rows
      one.connections += measures.connections
    }
  }
  return [...found.values()].sort((a, b) => b.connections - a.connections || (a.rule < b.rule ? -1 : 1))
}

/** Number of rows in a group that no rule is known to allow (`flows`), and number of their connections. */
export interface Uncovered {
  flows: number
  connections: number
  /**
   * Number of connections in `connections` that are certainly not allowed now but that the draft would allow; null if
   * the draft was not read.
   */
  draft_allowed_connections: number | null
}
export interface UncoveredService extends Uncovered {
  port: number | null
  /** IANA protocol number. */
  proto: number | null
  /** The names of the processes with the most connections, at most five. */
  processes: string[]
}

const MAX_PROCESSES = 5

/**
 * The key of a group of uncovered rows: `K`, what the active policy decides about these rows, and what the draft
 * decides.
 */
type Drafted<K> = K & { decision: string | null; draft: string | null }

/**
 * Groups uncovered rows in two ways: by service, and by the party on the given side. The party is an application or, if
 * it belongs to none, a single host or address.
 */
export function collectUncovered(encoder: FlowEncoder, side: Side) {
  const [decision, draft] = [textColumn(encoder, 'decision'), textColumn(encoder, 'draftDecision')]
  const application = applicationColumns(encoder)[side]
  const by = <K extends object>(columns: { readonly [P in keyof K]: Column<K[P]> }) =>
    groupRows({ ...columns, decision, draft }) as unknown as Grouping<Drafted<K>>
  const services = by({ port: portColumn, proto: protocolColumn, process: textColumn(encoder, 'process') })
  const applications = by({ application })
  const ends = by({ end: wholeEndColumn(encoder, side) })
  return {
    add(row: FlowRow): void {
      services.add(row)
      // Code 0 means that this end belongs to no application.
      if (application.code(row) === 0) ends.add(row)
      else applications.add(row)
    },
    /**
     * Returns all groups, those with the most connections first. The application itself (`own`) is not listed as a
     * remote application.
     */
    result: (own: Application, hasDraft: boolean) => ({
      services: fold(services, hasDraft, ({ port, proto }) => `${port} ${proto}`, startService, addProcess).map(
        ({ processes, ...service }): UncoveredService => ({ ...service, processes: nameProcesses(processes) }),
      ),
      apps: fold(
        applications,
        hasDraft,
        ({ application: is }) => `${is?.app}\u0000${is?.env}`,
        ({ application: is }) => ({ app: is?.app ?? '', env: is?.env ?? '' }),
      ).filter(({ app, env }) => app !== own.app || env !== own.env),
      ends: fold(ends, hasDraft, ({ end }) => end, describeEnd),
    }),
  }
}

/** Merges all groups for which `idOf` returns the same value into one entry with their totals. */
function fold<K, T extends object>(
  groups: Iterable<Group<Drafted<K>>>,
  hasDraft: boolean,
  idOf: (keys: K) => unknown,
  start: (keys: K) => T,
  more: (entry: T, group: Group<Drafted<K>>) => void = () => undefined,
): (T & Uncovered)[] {
  const found = new Map<unknown, T & Uncovered>()
  for (const group of groups) {
    const { keys, rows, measures } = group
    const id = idOf(keys)
    const none = { flows: 0, connections: 0, draft_allowed_connections: hasDraft ? 0 : null }
    const entry = found.get(id) ?? { ...start(keys), ...none }
    found.set(id, entry)
    entry.flows += rows
    entry.connections += measures.connections
    const isOpened = isNotAllowed(readWord(keys.decision)) && readDecision(keys.draft) === 'allowed'
    if (entry.draft_allowed_connections !== null && isOpened) {
      entry.draft_allowed_connections += measures.connections
    }
    more(entry, group)
  }
  // Entries with equal totals are ordered by content, so that the answer does not depend on the order of the rows.
  return [...found.values()].sort(
    (a, b) => b.connections - a.connections || b.flows - a.flows || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1),
  )
}

interface ServiceKeys {
  port: number | null
  proto: number | null
  process: string | null
}

const startService = ({ port, proto }: ServiceKeys) => ({ port, proto, processes: new Map<string, number>() })

function addProcess(
  { processes }: ReturnType<typeof startService>,
  { keys: { process }, measures }: Group<ServiceKeys>,
): void {
  if (process !== null) processes.set(process, (processes.get(process) ?? 0) + measures.connections)
}

function nameProcesses(processes: ReadonlyMap<string, number>): string[] {
  return [...processes]
    .sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1))
    .slice(0, MAX_PROCESSES)
    .map(([name]) => name)
}

function describeEnd({ end }: { end: FlowEnd }) {
  const isHalf = end.labels.app !== undefined || end.labels.env !== undefined
  return {
    endpoint: endpointLabel(end),
    ip: end.ip,
    kind: isHalf ? ('half_labelled' as const) : ('unlabelled' as const),
  }
}
