import { POLICY_DECISIONS, type PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { portName } from '../inventory/protocols.js'
import { compareTexts } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import { applicationName, applicationOf } from './applications.js'
import { classifyAccount, type AccountClass } from './classify-account.js'
import { derivedColumn, endColumns, textColumn } from './columns.js'
import { DECISIONS_BY_CONCERN } from './decisions-by-concern.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { fileName } from './file-name.js'
import { endpointLabel, seenFromOutside, type FlowEnd } from './flow-ends.js'
import { createTupleTable } from './group-tables.js'
import { growingBlocks, placeInBlock } from './growing-blocks.js'
import { mergeAccounts, type Person } from './merge-accounts.js'
import { parseAccount, type Account } from './parse-account.js'

/**
 * The kind of a destination. `application`: it has an app and an env label. `host`: the PCE knows it, but it belongs to
 * no application. `external`: it is not in the PCE's inventory.
 */
export type DestinationKind = 'application' | 'host' | 'external'

/** A destination to which a person connected, or tried to connect. */
export interface Reached {
  to: string
  kind: DestinationKind
  connections: number
  /** The ports, busiest first, as `443/tcp`. */
  ports: readonly string[]
  /** The policy decisions on the connections, those that deserve attention first. */
  policy: readonly PolicyDecision[]
}

/** The destinations that a person could reach. Blocked connections do not count as reach and are counted separately. */
export interface Reach {
  person: Person
  class: AccountClass
  /** The number of connections of each of the person's accounts. */
  connectionsOf: ReadonlyMap<Account, number>
  connections: number
  blockedConnections: number
  /** Number of distinct sources from which the person connected: workloads, or addresses that belong to no workload. */
  hosts: number
  /** For each kind, the number of destinations with connections that are not blocked. */
  reached: Record<DestinationKind, number>
  /** Number of distinct pairs of port and protocol in the connections that are not blocked. */
  ports: number
  /** The file names of the busiest programs. */
  programs: readonly string[]
}

/** Flow rows that do not show what an account reaches: their number, and the number of their connections. */
interface LeftOut {
  rows: number
  connections: number
}

export interface AccountReach {
  /** The reach of every person, those with the most destinations first. */
  people: Reach[]
  /** Rows that the source reported without an account. */
  withoutAccount: LeftOut
  /**
   * Flow rows reported only by the destination. The account they name is the one running the listening process, not the
   * one that opened the connection.
   */
  ofListeners: LeftOut
  /** Flow rows that do not show which end reported them. */
  undirected: LeftOut
  /**
   * Returns the destinations of each of these people: applications first, then hosts, then external ones. Within a
   * kind, those with the most connections come first.
   */
  readonly destinationsOf: (people: readonly Reach[]) => Steps<Reached[][]>
}

/** Collects which destinations each account reaches. */
export interface AccountReachFinder {
  add(row: FlowRow): void
  finish(): Steps<AccountReach>
}

/** The kinds of destinations, by the character that is put in front of a destination's name to mark its kind. */
const KINDS: Readonly<Record<string, DestinationKind>> = { a: 'application', h: 'host', e: 'external' }
const MOST_PROGRAMS = 3
const STEP = 512

/**
 * Creates the collector. The user in a flow row belongs to the end that reported the row. So only rows reported by the
 * source show what an account reaches. The caller should have replaced the recorded decisions in the rows with those of
 * the policy.
 */
export function findAccountReach(encoder: FlowEncoder): AccountReachFinder {
  const { dictionaries } = encoder
  const [inbound, outbound] = [dictionaries.direction.code('inbound'), dictionaries.direction.code('outbound')]
  const endpoint = dictionaries.clientType.code('endpoint')
  const decisions = new Map(POLICY_DECISIONS.map((word, at) => [dictionaries.decision.code(word), at]))
  const unknown = POLICY_DECISIONS.indexOf('unknown')
  const blocked = POLICY_DECISIONS.indexOf('blocked')
  const destination = endColumns(encoder, nameDestination).dst
  const source = endColumns(encoder, ({ workload, ip }) => workload ?? ip).src
  const computer = endColumns(encoder, ({ hostname }) => hostname).src
  const program = derivedColumn(textColumn(encoder, 'process'), (path) => path && fileName(path))
  const rows = countTuples(5)
  const [hosts, programs, services, endpoints] = [countTuples(2), countTuples(2), countTuples(2), countTuples(1)]
  const computers = countTuples(1)
  const leftOut = { withoutAccount: noRows(), ofListeners: noRows(), undirected: noRows() }

  return {
    add(row) {
      const { user, connections } = row
      const out =
        row.direction === inbound
          ? leftOut.ofListeners
          : row.direction !== outbound
            ? leftOut.undirected
            : user === 0
              ? leftOut.withoutAccount
              : null
      if (out !== null) {
        out.rows += row.count
        out.connections += connections
        return
      }
      rows.add(connections, user, destination.code(row), row.port, row.proto, decisions.get(row.decision) ?? unknown)
      hosts.add(connections, user, source.code(row))
      computers.add(0, computer.code(row))
      if (row.process !== 0) programs.add(connections, user, program.code(row))
      if (row.windowsService !== 0) services.add(connections, user, row.windowsService)
      if (row.clientType === endpoint) endpoints.add(connections, user)
    },
    *finish() {
      const totals = new Map<number, number>()
      for (let at = 0; at < rows.size(); at++) {
        if (at % STEP === STEP - 1) yield
        totals.set(rows.at(at, 0), (totals.get(rows.at(at, 0)) ?? 0) + rows.sum(at))
      }
      const accounts = new Map<Account, number>()
      for (const user of totals.keys()) accounts.set(parseAccount(dictionaries.user.value(user) as string), user)
      const busyness = (account: Account) => totals.get(accounts.get(account)!)!
      const ordered = [...accounts.keys()].sort((a, b) => busyness(b) - busyness(a) || compareTexts(a.text, b.text))
      yield
      const names = Array.from({ length: computers.size() }, (_, at) => computer.value(computers.at(at, 0)) ?? '')
      const people = mergeAccounts(ordered, names)
      yield
      const personOf = new Map<number, number>()
      for (const [at, person] of people.entries())
        for (const account of accountsOf(person)) personOf.set(accounts.get(account)!, at)

      const uses = people.map(() => ({
        programs: [] as [string, number][],
        windowsServices: [] as string[],
        onEndpoint: false,
      }))
      const useOf = (user: number) => uses[personOf.get(user)!]!
      for (let at = 0; at < programs.size(); at++)
        useOf(programs.at(at, 0)).programs.push([program.value(programs.at(at, 1)) as string, programs.sum(at)])
      yield
      for (let at = 0; at < services.size(); at++)
        useOf(services.at(at, 0)).windowsServices.push(dictionaries.windowsService.value(services.at(at, 1)) as string)
      for (let at = 0; at < endpoints.size(); at++) useOf(endpoints.at(at, 0)).onEndpoint = true
      yield

      const found = people.map((person, at): Reach => {
        const use = uses[at]!
        const own = busiestFirst(use.programs)
        return {
          person,
          class: classifyPerson(person, { ...use, programs: own }),
          connectionsOf: new Map(accountsOf(person).map((account) => [account, busyness(account)])),
          connections: accountsOf(person).reduce((sum, account) => sum + busyness(account), 0),
          blockedConnections: 0,
          hosts: 0,
          reached: { application: 0, host: 0, external: 0 },
          ports: 0,
          programs: own.slice(0, MOST_PROGRAMS),
        }
      })
      const [sources, destinations, ports] = [countTuples(2), countTuples(2), countTuples(3)]
      for (let at = 0; at < hosts.size(); at++) {
        if (at % STEP === STEP - 1) yield
        const person = personOf.get(hosts.at(at, 0))!
        if (sources.add(0, person, hosts.at(at, 1))) found[person]!.hosts += 1
      }
      for (let at = 0; at < rows.size(); at++) {
        if (at % STEP === STEP - 1) yield
        const person = personOf.get(rows.at(at, 0))!
        const reach = found[person]!
        if (rows.at(at, 4) === blocked) {
          reach.blockedConnections += rows.sum(at)
          continue
        }
        const kind = KINDS[(destination.value(rows.at(at, 1)) as string)[0] as string]!
        if (destinations.add(0, person, rows.at(at, 1))) reach.reached[kind] += 1
        if (ports.add(0, person, rows.at(at, 2), rows.at(at, 3))) reach.ports += 1
      }
      return {
        ...leftOut,
        people: found.sort(widestFirst),
        *destinationsOf(wanted) {
          const places = new Map(wanted.map((reach, at) => [reach, at]))
          const found = wanted.map(() => new Map<number, Sums>())
          const placeOf = new Map<number, number>()
          for (const [reach, at] of places)
            for (const account of accountsOf(reach.person)) placeOf.set(accounts.get(account)!, at)
          for (let at = 0; at < rows.size(); at++) {
            if (at % STEP === STEP - 1) yield
            const own = found[placeOf.get(rows.at(at, 0)) ?? -1]
            if (own === undefined) continue
            const code = rows.at(at, 1)
            const one = own.get(code) ?? { connections: 0, ports: [], policy: new Set() }
            own.set(code, one)
            one.connections += rows.sum(at)
            one.ports.push([portOf(rows.at(at, 2), rows.at(at, 3)), rows.sum(at)])
            one.policy.add(rows.at(at, 4))
          }
          const lists: Reached[][] = []
          for (const own of found) {
            yield
            const list = [...own].map(([code, { connections, ports: of, policy }]): Reached => {
              const text = destination.value(code) as string
              return {
                to: text.slice(1),
                kind: KINDS[text[0] as string]!,
                connections,
                ports: busiestFirst(of),
                policy: DECISIONS_BY_CONCERN.filter((word) => policy.has(POLICY_DECISIONS.indexOf(word))),
              }
            })
            lists.push(list.sort(applicationsFirst))
          }
          return lists
        },
      }
    },
  }
}

/** The totals of one destination that a person reached. */
interface Sums {
  connections: number
  /** Ports with their numbers of connections. The same port may occur several times. */
  ports: [string, number][]
  /** The positions of the decisions in POLICY_DECISIONS. */
  policy: Set<number>
}

const ORDER = Object.values(KINDS)
const applicationsFirst = (a: Reached, b: Reached): number =>
  ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || b.connections - a.connections || compareTexts(a.to, b.to)
const noRows = (): LeftOut => ({ rows: 0, connections: 0 })

/** Returns all accounts of a person, including those that are only suspected to be the same person. */
export const accountsOf = ({ main, spellings, aliases }: Person): Account[] => [
  main,
  ...spellings,
  ...aliases.map(({ account }) => account),
]

/** Returns the name of a destination, preceded by the character that marks its kind. */
function nameDestination(end: FlowEnd): string {
  const application = applicationOf(end)
  if (application !== null) return `a${applicationName(application)}`
  const isKnown = end.workload !== null || Object.keys(end.labels).length > 0 || seenFromOutside(end) !== null
  return `${isKnown ? 'h' : 'e'}${endpointLabel(end)}`
}

const portOf = (port: number, proto: number): string =>
  portName({ port: port <= 0 ? null : port, proto: proto === -1 ? null : proto })

const busiestFirst = (counted: readonly (readonly [string, number])[]): string[] => {
  const sums = new Map<string, number>()
  for (const [text, many] of counted) sums.set(text, (sums.get(text) ?? 0) + many)
  return [...sums].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)).map(([text]) => text)
}

/** Classifies a person by the first account whose class is certain, or else by the main account. */
function classifyPerson(person: Person, use: Parameters<typeof classifyAccount>[1]): AccountClass {
  const main = classifyAccount(person.main, use)
  return person.aliases
    .map(({ account }) => classifyAccount(account, use))
    .reduce((best, one) => (one.isCertain && !best.isCertain ? one : best), main)
}

const widthOf = ({ reached: { application, host } }: Reach): number => application + host
const widestFirst = (a: Reach, b: Reach): number =>
  widthOf(b) - widthOf(a) ||
  b.ports - a.ports ||
  b.reached.external - a.reached.external ||
  b.connections - a.connections ||
  compareTexts(a.person.main.text, b.person.main.text)

/** Creates a table that adds up values for distinct tuples. `add` returns true if the tuple is new. */
function countTuples(width: number) {
  const table = createTupleTable(width)
  const tuple = new Int32Array(width)
  const sums = growingBlocks((places) => new Float64Array(places))
  return {
    add(value: number, ...codes: readonly number[]): boolean {
      for (let at = 0; at < width; at++) tuple[at] = codes[at] as number
      const before = table.size
      const slot = table.slot(tuple)
      sums.upTo(slot)[placeInBlock(slot)]! += value
      return table.size > before
    },
    at: (slot: number, column: number): number => table.at(slot, column),
    sum: (slot: number): number => sums.of(slot)[placeInBlock(slot)]!,
    size: (): number => table.size,
  }
}
