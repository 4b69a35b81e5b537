import ipaddr from 'ipaddr.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import { ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { TCP, UDP } from '../inventory/protocols.js'
import { classifyAddress } from '../policy/addresses.js'
import { collectAssumedFacts, type AssumedFacts } from '../policy/assumed-facts.js'
import { noDisagreement } from '../policy/compare-record.js'
import type { DecidedRow, DecidedWord } from '../policy/decide-rows.js'
import { isUnknown, undecidedBecause, type Answer } from '../policy/three-valued.js'
import { countOf } from '../text/describe-numbers.js'
import { applicationColumns } from '../traffic/applications.js'
import { endColumn, endColumns, portColumn, protocolNameColumn, type Column } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createTupleTable } from '../traffic/group-tables.js'

/** The facts about one end of a flow that the evaluators use. Ends with the same facts share one EndClass. */
export interface EndClass {
  /**
   * True if this end is in the assessed part of the organisation: it has the assessed labels or, if everything is
   * assessed, it is a workload.
   */
  isAssessed: boolean
  /**
   * `application`: this end has both an app and an env label. `half`: it has only one of them. `none`: it has neither.
   */
  identity: 'application' | 'half' | 'none'
  env: string | null
  /**
   * The type of this end. `workload`: a workload of the PCE. `public`: an internet address, or a host of which only the
   * name is known. `local`: any other address.
   */
  network: 'workload' | 'public' | 'local'
  /** True if this end is in an IP list with specific addresses. IP lists as broad as the internet do not count. */
  isListed: boolean
  managed: boolean
}

/** Facts about the organisation that are needed to classify the ends of flows. */
export interface EndFacts {
  isAssessed(end: FlowEnd): boolean
  /** Names of IP lists that are so broad that an address in them is not thereby identified. */
  broadLists: ReadonlySet<string>
}

export function classifyEnd(end: FlowEnd, facts: EndFacts): EndClass {
  const { app, env } = end.labels
  const isWorkload = end.workload !== null
  return {
    isAssessed: facts.isAssessed(end),
    identity:
      app !== undefined && env !== undefined ? 'application' : app === undefined && env === undefined ? 'none' : 'half',
    env: env ?? null,
    network: isWorkload ? 'workload' : isPublic(end) ? 'public' : 'local',
    isListed: end.lists.some((name) => !facts.broadLists.has(name)),
    managed: end.managed,
  }
}

/** Returns true if an end cannot be identified, because it has no app or env label and is in no specific IP list. */
export const isUnidentified = ({ identity, isListed }: EndClass): boolean => identity === 'none' && !isListed

/** The values of env labels that mean production, in lower case. */
const PRODUCTION = new Set(['prod', 'production'])
export const isProduction = (env: string | null | undefined): boolean => PRODUCTION.has((env ?? '').toLowerCase())

const isPublic = ({ ip, fqdn }: FlowEnd): boolean => {
  const known = ip === null ? null : classifyAddress(ip)
  return known === null ? fqdn !== null : known === 'public'
}

/**
 * The shortest prefix of a network that counts as specific: 10.0.0.0/8 still identifies a network, a wider range does
 * not.
 */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 16 } as const

/**
 * Returns the names of the IP lists that cover all or most of the internet. Being in such a list does not make an
 * address approved.
 */
export function findBroadLists(lists: readonly IpList[]): ReadonlySet<string> {
  return new Set([...ANY_IP_LIST_NAMES, ...lists.filter(isBroad).map(({ name }) => name)])
}

export function isBroad({ ip_ranges: ranges, fqdns }: IpList): boolean {
  return (
    (ranges ?? []).some(({ from_ip: from, to_ip: to, exclusion }) => exclusion !== true && isWide(from, to)) ||
    (fqdns ?? []).some(({ fqdn }) => fqdn === '*')
  )
}

function isWide(from: string, to: string | null | undefined): boolean {
  const [address = '', prefix] = from.split('/')
  if (!isAddress(address)) return false
  const first = ipaddr.parse(address)
  const shortest = SHORTEST_PREFIX[first.kind()]
  if (prefix !== undefined) return Number(prefix) < shortest
  if (to === undefined || to === null || !isAddress(to)) return false
  return leadingByte(ipaddr.parse(to)) - leadingByte(first) > 1
}

const leadingByte = (address: ipaddr.IPv4 | ipaddr.IPv6): number => address.toByteArray()[0] ?? 0

/**
 * A group of flow rows that all evaluators treat alike, because they have the same class of source, class of
 * destination, direction, port and decision.
 */
export interface Cell {
  source: EndClass
  destination: EndClass
  /**
   * `inbound`: the traffic enters the assessed part. `outbound`: it leaves the assessed part. Both are true if both
   * ends are in the assessed part.
   */
  inbound: boolean
  outbound: boolean
  /** The port, if it is a TCP or UDP port that at least one evaluator needs; otherwise null. */
  port: number | null
  /** The decision of the rules, whatever decision the PCE recorded (D78). */
  decision: DecidedWord
  /** The possible decisions. There are several if it is not certain what happens to the traffic. */
  possible: readonly PolicyDecision[]
  undecided: Answer
}

/** A test of a cell (a group of flow rows, see `Cell`), usually of its source, destination and decision. */
export type CellTest = (cell: Cell) => boolean

/**
 * Returns two tests for traffic that meets `about` and passes because nothing stops it. `passing_unenforced`: no rule
 * allows it, but the mode does not block it. `enforced_at_neither_end`: neither of its ends enforces policy, so no
 * rules are applied.
 */
export const unenforced = (about: CellTest) => ({
  passing_unenforced: (cell: Cell) => about(cell) && cell.decision === 'potentially_blocked',
  enforced_at_neither_end: (cell: Cell) => about(cell) && cell.decision === 'unknown',
})

/** Returns true if more than one decision is possible, so that it is not certain what happens to the traffic. */
export const isOpen: CellTest = ({ possible }) => possible.length > 1

/** Returns true if the traffic may be blocked already, but this is not certain. */
export const mayBeBlocked: CellTest = (cell) => isOpen(cell) && cell.possible.includes('blocked')

/** Returns one copy of the cell for each of its possible decisions. */
export const alternatives = (cell: Cell): readonly Cell[] => cell.possible.map((decision) => ({ ...cell, decision }))

/**
 * Returns sentences about the rows that pass `test`: how many are undecided, how many of those without an allow rule
 * may be blocked already, and why. Returns an empty string if all these rows are certain.
 */
export function describeDoubt(traffic: TrafficExposure, test: CellTest): string {
  const tell = (word: DecidedWord, text: string) => {
    const about: CellTest = (cell) => cell.decision === word && isOpen(cell) && test(cell)
    const { rows } = traffic.count(about)
    return rows === 0 ? '' : `${countOf(rows, 'row')} ${text}${undecidedBecause(traffic.answers(about))}. `
  }
  return tell('undecided', '') + tell('potentially_blocked', 'that no rule allows may be blocked already: ')
}

export interface ShownFlow {
  from: string
  to: string
  port: number | null
  proto: string | null
  decision: string
  connections: number
}

/** A number of flow rows and the sum of their connections. */
export interface TrafficCount {
  rows: number
  connections: number
}

/** The traffic of the assessed part. Traffic inside one application is left out, because it is not a risk (T19). */
export interface TrafficExposure {
  /** Number of all rows that were read, including those inside an application. */
  rows: number
  /** Number of rows whose source and destination belong to the same application. */
  inside: number
  /** True if the row limit was reached, so that some traffic is missing. */
  truncated: boolean
  count(test: CellTest): TrafficCount
  /**
   * Numbers of connections whose recorded decision contradicts the rules. Connections inside applications do not count.
   */
  recorded: RecordedOtherwise
  /** Returns the unconfirmed assumptions about the PCE on which the decisions of the matching cells depend. */
  assumes(test: CellTest): string[]
  /** Returns the distinct reasons why the decisions of matching cells are not certain. */
  answers(test: CellTest): Answer[]
  /** Returns the matching flows with the most connections, at most `limit`. */
  busiest(test: CellTest, limit: number): ShownFlow[]
}

type Way = Pick<Cell, 'inbound' | 'outbound'>

interface ExposureMeter {
  /** Adds a row. If `way` is absent, the direction follows from which of its ends are assessed. */
  add(row: FlowRow, way?: Way): void
  finish(truncated: boolean): TrafficExposure
}

/**
 * Aggregates rows into one group per source, destination and service, so that the rows themselves need not be kept.
 * `decide` returns what the rules decide about a row.
 */
export function createExposureMeter(
  encoder: FlowEncoder,
  classify: (end: FlowEnd) => EndClass,
  decide: (row: FlowRow) => DecidedRow,
  ports: ReadonlySet<number>,
): ExposureMeter {
  const texts = endColumns(encoder, (end) => JSON.stringify(classify(end)))
  const classes: EndClass[] = []
  const classAt = (code: number) => (classes[code] ??= JSON.parse(texts.src.value(code) as string) as EndClass)
  const applications = applicationColumns(encoder)

  const table = createTupleTable(5)
  const cells: Cell[] = []
  /** Maps each combination of a decision and its reasons for uncertainty to a number. */
  const certainties = new Map<string, number>()
  const recorded = noDisagreement()
  /** The unconfirmed assumptions about the PCE on which each cell depends, by the number of the cell. */
  const assumed: AssumedFacts[] = []
  const tuple = new Int32Array(5)
  let current = 0
  const cell: Column<Cell> = { code: () => current, value: (code) => cells[code] as Cell }
  const sums = groupRows({ cell })
  const flows = groupRows({
    cell,
    from: endColumn(encoder, 'src', endpointLabel),
    to: endColumn(encoder, 'dst', endpointLabel),
    port: portColumn,
    proto: protocolNameColumn,
  })
  let [rows, inside] = [0, 0]

  const certaintyOf = ({ word, possible, undecided }: DecidedRow): number => {
    const id = `${word} ${possible.join('|')} ${isUnknown(undecided) ? undecided.unknown.join('|') : undecided}`
    const known = certainties.get(id) ?? certainties.size
    certainties.set(id, known)
    return known
  }

  const cellOf = (row: FlowRow, { inbound, outbound }: Way, decided: DecidedRow): number => {
    const { word: decision, possible, undecided } = decided
    const isWatched = (row.proto === TCP || row.proto === UDP) && ports.has(row.port)
    tuple[0] = texts.src.code(row)
    tuple[1] = texts.dst.code(row)
    tuple[2] = isWatched ? row.port : -1
    tuple[3] = certaintyOf(decided)
    tuple[4] = (inbound ? 1 : 0) + (outbound ? 2 : 0)
    const slot = table.slot(tuple)
    if (slot === cells.length) {
      const [source, destination] = [classAt(tuple[0]), classAt(tuple[1])]
      const port = isWatched ? row.port : null
      cells.push({ source, destination, inbound, outbound, port, decision, possible, undecided })
    }
    const facts = (assumed[slot] ??= collectAssumedFacts())
    if (decision !== 'unknown') facts.add(undecided, encoder.ends.end(row.src), encoder.ends.end(row.dst))
    return slot
  }

  return {
    add(row, way) {
      rows += row.count
      const application = applications.src.code(row)
      if (application !== 0 && application === applications.dst.code(row)) {
        inside += row.count
        return
      }
      const decided = decide(row)
      if (decided.disagreement !== null) recorded[decided.disagreement] += row.connections
      current = cellOf(
        row,
        way ?? { inbound: classAt(texts.dst.code(row)).isAssessed, outbound: classAt(texts.src.code(row)).isAssessed },
        decided,
      )
      sums.add(row)
      flows.add(row)
    },
    finish(truncated) {
      const counts = [...sums].map(({ keys, rows: of, measures }) => ({ cell: keys.cell, rows: of, ...measures }))
      return {
        rows,
        inside,
        truncated,
        recorded,
        count(test) {
          const total = { rows: 0, connections: 0 }
          for (const one of counts) {
            if (!test(one.cell)) continue
            total.rows += one.rows
            total.connections += one.connections
          }
          return total
        },
        assumes: (test) =>
          [...new Set(cells.flatMap((one, at) => (test(one) ? (assumed[at]?.list() ?? []) : [])))].sort(),
        answers: (test) => [...new Set(cells.filter(test).map(({ undecided }) => undecided))],
        busiest(test, limit) {
          const wanted = new Set(cells.filter(test))
          return [...flows.busiestWithin('cell', wanted, limit).values()]
            .flatMap(({ groups }) => groups)
            .map(({ keys, measures }) => ({
              from: keys.from ?? 'unknown',
              to: keys.to ?? 'unknown',
              port: keys.port,
              proto: keys.proto,
              decision: keys.cell.decision,
              connections: measures.connections,
            }))
            .sort((a, b) => b.connections - a.connections || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
            .slice(0, limit)
        },
      }
    },
  }
}
