import ipaddr from 'ipaddr.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { passesUnenforced } from '../../schemas/pce/policy-decisions.js'
import { ANY_IP_LIST_NAMES } from '../../schemas/pce/words.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { TCP, UDP } from '../inventory/protocols.js'
import { classifyAddress } from '../policy/addresses.js'
import { collectAssumedFacts, type AssumedFacts } from '../policy/assumed-facts.js'
import type { JudgeAllowed } from '../policy/judge-allowed.js'
import { isModeUntold, mayPassByDefault } from '../policy/mode-effects.js'
import { isUnknown, undecidedBecause, type Answer } from '../policy/three-valued.js'
import { countOf } from '../text/describe-numbers.js'
import { applicationColumns } from '../traffic/applications.js'
import {
  endColumn,
  endColumns,
  portColumn,
  protocolColumn,
  protocolNameColumn,
  textColumn,
  type Column,
} from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createTupleTable } from '../traffic/group-tables.js'

/** What the evaluators know about one end of a flow. Ends that look the same to every evaluator share one EndClass. */
export interface EndClass {
  /** True if the end carries the assessed labels; true for every workload when the whole estate is assessed. */
  isAssessed: boolean
  /** `application`: the end has both an app and an env label. `half`: it has only one of them. */
  identity: 'application' | 'half' | 'none'
  env: string | null
  /** `workload`: known to the PCE. `public`: an internet address, or an end known only by its name. */
  network: 'workload' | 'public' | 'local'
  /** True if the end is in an IP list that names specific addresses. Lists as broad as the internet do not count. */
  isListed: boolean
  managed: boolean
  /** The enforcement mode of a managed workload; null for any other end, or if the mode is unknown. */
  mode: string | null
}

/** Facts about the estate that are needed to classify an end. */
export interface EndFacts {
  isAssessed(end: FlowEnd): boolean
  /** Names of IP lists so broad that being in one identifies nobody. */
  broadLists: ReadonlySet<string>
  /**
   * Returns the current mode of an assessed workload in the PCE. For any other workload it returns null, and the mode
   * is then taken from the flow row.
   */
  modeOf(workload: string): string | null
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
    mode: end.workload !== null && end.managed ? (facts.modeOf(end.workload) ?? end.mode) : null,
  }
}

/** Returns true if nothing says who the end is: it has no app or env label and is in no specific IP list. */
export const isUnidentified = ({ identity, isListed }: EndClass): boolean => identity === 'none' && !isListed

/** Env label values that mean production, in lower case. */
const PRODUCTION = new Set(['prod', 'production'])
export const isProduction = (env: string | null | undefined): boolean => PRODUCTION.has((env ?? '').toLowerCase())

const isPublic = ({ ip, fqdn }: FlowEnd): boolean => {
  const known = ip === null ? null : classifyAddress(ip)
  return known === null ? fqdn !== null : known === 'public'
}

/** Shortest prefix length that still identifies a network: 10.0.0.0/8 counts as specific, anything wider does not. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 16 } as const

/**
 * Returns the names of the IP lists that cover all or most of the internet. Being in such a list is not an approval.
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

/** A group of flow rows that all evaluators treat alike: the same classes of ends, direction, port and decision. */
export interface Cell {
  source: EndClass
  destination: EndClass
  /**
   * `inbound` means that the traffic enters the assessed part of the estate, `outbound` that it leaves it. Both are
   * true if both ends belong to it.
   */
  inbound: boolean
  outbound: boolean
  /** A TCP or UDP port that some evaluator asked for; null for any other port. */
  port: number | null
  decision: string
  /**
   * Whether an allow rule permits traffic whose decision is `allowed`. This can be uncertain at an end in selective
   * mode, because all traffic that no deny rule matches passes there.
   */
  byRule: Answer
}

/**
 * Returns true if the traffic passes only because nothing stops it yet: policy is not enforced, or no VEN judged the
 * flow.
 */
export const isUnenforced = ({ decision }: Cell): boolean => passesUnenforced(decision)

/**
 * Returns true if the traffic is possibly allowed only because no deny rule matched, and not by an allow rule (P52).
 */
export const mayBeByDefault = ({ decision, byRule }: Cell): boolean => decision === 'allowed' && byRule !== 'yes'

/**
 * Describes in sentences how many of the matching allowed rows are possibly not allowed by a rule; rows that a deny
 * rule is about are counted separately. Returns an empty text if rules allow all of them.
 */
export function describeDefault(traffic: TrafficExposure, test: (cell: Cell) => boolean): string {
  const isDenied = ({ byRule }: Cell) => isUnknown(byRule) && byRule.unknown.includes('selective_outbound')
  const denied = traffic.count((cell) => test(cell) && mayBeByDefault(cell) && isDenied(cell)).rows
  const against =
    denied === 0
      ? ''
      : `${countOf(denied, 'allowed row')} in spite of a deny rule at a source in selective mode: whether it drops them there is not known. `
  const doubtful = (cell: Cell) => test(cell) && mayBeByDefault(cell) && !isDenied(cell)
  const [all, undecided] = [doubtful, (cell: Cell) => doubtful(cell) && cell.byRule !== 'no'].map(
    (one) => traffic.count(one).rows,
  ) as [number, number]
  if (all === 0) return against
  const because = undecided === 0 ? '' : `, ${undecided} of them ${undecidedBecause(traffic.answers(doubtful))}`
  const hasUntold = ({ source, destination }: Cell) => [source, destination].map(judgedMode).some(isModeUntold)
  const untold = traffic.count((cell) => doubtful(cell) && hasUntold(cell)).rows
  const mode = `selective mode${untold > 0 ? ', or one that is not known' : ''}`
  return `${countOf(all, 'allowed row')} may only mean that no deny rule matched (${mode})${because}. ${against}`
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

/**
 * The traffic of the assessed part of the estate. Traffic inside one application is left out, because it is not a risk
 * (T19).
 */
export interface TrafficExposure {
  /** Number of all rows that were read, including those inside applications. */
  rows: number
  /** Number of rows whose two ends belong to the same application. */
  inside: number
  /** True if the row limit was reached, so that traffic is missing. */
  truncated: boolean
  count(test: (cell: Cell) => boolean): TrafficCount
  /** Returns the unsettled facts about the PCE behind the answers to "does a rule allow this?" among the matching cells. */
  assumes(test: (cell: Cell) => boolean): string[]
  /** Returns the distinct answers to "does a rule allow this?" among the matching cells. */
  answers(test: (cell: Cell) => boolean): Answer[]
  /** Returns the matching flows with the most connections, at most `limit`. */
  busiest(test: (cell: Cell) => boolean, limit: number): ShownFlow[]
}

/**
 * Returns the mode by which rules are judged: null for an end without a VEN, `unknown` if the PCE does not report it.
 */
const judgedMode = ({ managed, mode }: EndClass): string | null => (managed ? (mode ?? 'unknown') : null)

type Way = Pick<Cell, 'inbound' | 'outbound'>

interface ExposureMeter {
  /** Adds a row. Without `way`, the direction is derived from the ends that are assessed. */
  add(row: FlowRow, way?: Way): void
  finish(truncated: boolean): TrafficExposure
}

/** Aggregates rows into one group per pair of ends and service, so that the rows themselves need not be kept. */
export function createExposureMeter(
  encoder: FlowEncoder,
  classify: (end: FlowEnd) => EndClass,
  judgeAllowed: JudgeAllowed,
  ports: ReadonlySet<number>,
): ExposureMeter {
  const texts = endColumns(encoder, (end) => JSON.stringify(classify(end)))
  const classes: EndClass[] = []
  const classAt = (code: number) => (classes[code] ??= JSON.parse(texts.src.value(code) as string) as EndClass)
  const applications = applicationColumns(encoder)
  const decisions = textColumn(encoder, 'decision')

  const table = createTupleTable(6)
  const cells: Cell[] = []
  const answers: Answer[] = []
  const codes = new Map<Answer, number>()
  /** The assumed facts by the number of the cell; absent for a cell for which the rules were not consulted. */
  const assumed: (AssumedFacts | undefined)[] = []
  const tuple = new Int32Array(6)
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

  const judge = (row: FlowRow): { code: number; note?: (facts: AssumedFacts) => void } => {
    if (decisions.value(decisions.code(row)) !== 'allowed') return { code: codeOf('yes') }
    const [source, destination] = [encoder.ends.end(row.src), encoder.ends.end(row.dst)]
    const sourceMode = judgedMode(classAt(texts.src.code(row)))
    const destinationMode = judgedMode(classAt(texts.dst.code(row)))
    const port = portColumn.value(portColumn.code(row))
    const proto = protocolColumn.value(protocolColumn.code(row))
    const answer = judgeAllowed({ source, destination, sourceMode, destinationMode, port, proto })
    const code = codeOf(answer)
    if (!mayPassByDefault(sourceMode, destinationMode)) return { code }
    return { code, note: (facts) => facts.add(answer, source, destination) }
  }
  const codeOf = (answer: Answer): number => {
    const known = codes.get(answer) ?? answers.push(answer) - 1
    codes.set(answer, known)
    return known
  }

  const cellOf = (row: FlowRow, { inbound, outbound }: Way): number => {
    const isWatched = (row.proto === TCP || row.proto === UDP) && ports.has(row.port)
    tuple[0] = texts.src.code(row)
    tuple[1] = texts.dst.code(row)
    tuple[2] = isWatched ? row.port : -1
    tuple[3] = decisions.code(row)
    tuple[4] = (inbound ? 1 : 0) + (outbound ? 2 : 0)
    const { code, note } = judge(row)
    tuple[5] = code
    const slot = table.slot(tuple)
    if (slot === cells.length) {
      const [source, destination] = [classAt(tuple[0]), classAt(tuple[1])]
      const decision = decisions.value(tuple[3]) ?? 'unknown'
      const byRule = answers[tuple[5]] as Answer
      cells.push({ source, destination, inbound, outbound, port: isWatched ? row.port : null, decision, byRule })
    }
    note?.((assumed[slot] ??= collectAssumedFacts()))
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
      current = cellOf(
        row,
        way ?? { inbound: classAt(texts.dst.code(row)).isAssessed, outbound: classAt(texts.src.code(row)).isAssessed },
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
        answers: (test) => [...new Set(cells.filter(test).map(({ byRule }) => byRule))],
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
