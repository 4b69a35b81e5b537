import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { ReferenceNames } from '../inventory/reference-names.js'
import { isInForce, rulesOf, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { PlacedRule } from '../policy/match-rules.js'
import { countIntervals, nameAddresses, uniteAddresses, type AddressSet } from '../policy/name-addresses.js'
import { nameReference } from '../policy/name-reference.js'
import { nameRule } from '../policy/name-rule.js'
import { conditionFieldsOf, describeConditions } from '../policy/rule-conditions.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import type { RuleType } from '../policy/rule-type.js'
import { quote } from '../text/escape-text.js'
import type { Steps } from '../text/pace-work.js'
import { countModes, type MachineClass, type Machines } from './group-machines.js'
import { readRulePorts } from './read-rule-ports.js'
import { createSideResolver, type Group, type Lack, type Side, type Virtual } from './resolve-sides.js'

/** The direction of a row as seen from the workloads that enforce it. `both`: the row reads the same at both ends. */
export const ROW_DIRECTIONS = ['inbound', 'outbound', 'both'] as const
export type RowDirection = (typeof ROW_DIRECTIONS)[number]

type ModeCounts = Readonly<Partial<Record<EndMode, number>>>

/**
 * A rule or a part of it: it applies from every address in `source` to every address in `destination` on every service.
 */
export interface ResolvedRow {
  action: RuleType
  direction: RowDirection
  source: AddressSet
  destination: AddressSet
  services: readonly string[]
  /** The workloads that enforce the rule in this direction, counted by their enforcement mode of now. */
  enforcedBy: ModeCounts
  /** Conditions of the rule that cannot be written as addresses or ports. */
  only: readonly string[]
  /** Whatever the rule names in addition to the addresses in `source` and `destination`. */
  besides: readonly string[]
  ruleSet: string | null
  /** The rule described in one line, with labels and names. */
  rule: string
  href: string
}

/**
 * A row as an answer shows it: a part of a resolved row with at most `MOST_ADDRESSES` addresses or ranges on each side.
 */
export interface RowPart {
  /** Identifies the part among all parts of the same policy. */
  href: string
  row: ResolvedRow
  source: readonly string[]
  destination: readonly string[]
}

/** The rules of a policy, resolved. */
export interface ResolvedRows {
  rows: readonly ResolvedRow[]
  /** Number of rules that have rows. */
  rules: number
  /** Number of rules that were left out because the maximum number of intervals was reached. */
  cut: number
  /** Number of rules for each kind of thing that they name and that is neither an address nor a port. */
  lacks: Readonly<Partial<Record<Lack | 'conditions', number>>>
  /** The workloads that the rows name, including workloads without an address. */
  named: Group
}

/** Maximum number of addresses or ranges on each side of a row in an answer. */
const MOST_ADDRESSES = 50
/** Maximum total number of intervals in all rows. It keeps rules between all workloads from filling the memory. */
const MOST_INTERVALS = 400_000

/** The conditions that narrow a rule and cannot be written as addresses or ports. */
const NARROWING: ReadonlySet<string> = new Set([
  'consuming_security_principals',
  'machine_auth',
  'sec_connect',
  'stateless',
])
const WIDENING: ReadonlySet<string> = new Set([
  'use_workload_subnets',
  'resolve_labels_as',
  'all_ips_except_for_in_consumers',
  'all_ips_except_for_in_providers',
])

/** The types of rules in the order in which they decide about a connection (P50). */
const IN_ORDER = ['override_deny', 'allow', 'deny'] as const satisfies readonly RuleType[]

interface Listed {
  type: RuleType
  rule: AnyRule
  scopes: PlacedRule['scopes']
  ruleSet: string | null
}

interface RowOptions {
  /** Returns true for the workloads whose rules are wanted, which are the rules that the PCE sends to them. */
  isMeant: (one: MachineClass) => boolean
  /** The draft href of the only rule set whose rules are wanted; absent for all rule sets. */
  only?: string
  /** The wanted direction. Rows that read the same at both ends belong to each direction. */
  direction?: RowDirection
}

/**
 * Resolves the rules in force to addresses and ports. Rules are in the order in which their types decide: override deny
 * rules, allow rules, deny rules.
 */
export function* resolveRows(
  policy: PolicySnapshot,
  machines: Machines,
  virtual: readonly Virtual[],
  names: ReferenceNames,
  { isMeant, only, direction = 'both' }: RowOptions,
): Steps<ResolvedRows> {
  const atLocal = createSideResolver({ machines, policy, virtual, names, isMeant })
  const atAll = createSideResolver({ machines, policy, virtual, names })
  const rows: ResolvedRow[] = []
  const lacks: Partial<Record<Lack | 'conditions', number>> = {}
  const modesOf = createModeCounter(machines)
  const classes = new Set<number>()
  const single = new Map<string, Group['single'][number]>()
  let [rules, cut, room] = [0, 0, MOST_INTERVALS]
  for (const listed of listRules(policy, only)) {
    yield
    if (room <= 0) {
      cut += 1
      continue
    }
    const { rule } = listed
    const sides: Record<'inbound' | 'outbound', [Side, Side][]> = { inbound: [], outbound: [] }
    for (const scope of listed.scopes) {
      const outer = rule.unscoped_consumers === true ? [] : scope
      const providers = yield* atLocal(rule, 'providers', scope)
      if (isThere(providers)) sides.inbound.push([yield* atAll(rule, 'consumers', outer), providers])
      const consumers = yield* atLocal(rule, 'consumers', outer)
      if (isThere(consumers)) sides.outbound.push([consumers, yield* atAll(rule, 'providers', scope)])
    }
    const wanted = direction === 'both' ? [...sides.inbound, ...sides.outbound] : sides[direction]
    const occurring = wanted.flat()
    // A rule has no row if the workloads that it names have no address. These workloads are counted nevertheless, so
    // that the answer mentions them.
    for (const { named } of occurring) {
      for (const at of named.classes) classes.add(at)
      for (const machine of named.single) single.set(machine.href, machine)
    }
    const enforcing = { inbound: sides.inbound.map(([, own]) => own), outbound: sides.outbound.map(([own]) => own) }
    const own = rowsOf(listed, sides, policy, names)
      .filter((row) => direction === 'both' || row.direction === 'both' || row.direction === direction)
      .map((row) => ({
        ...row,
        enforcedBy: modesOf(
          row.direction === 'both' ? [...enforcing.inbound, ...enforcing.outbound] : enforcing[row.direction],
        ),
      }))
    if (own.length === 0) continue
    rules += 1
    rows.push(...own)
    for (const row of own) room -= countIntervals(row.source) + countIntervals(row.destination)
    const kinds = new Set<Lack | 'conditions'>(occurring.flatMap((side) => side.lacks))
    if (own.some((row) => row.only.length > 0)) kinds.add('conditions')
    for (const kind of kinds) lacks[kind] = (lacks[kind] ?? 0) + 1
  }
  return { rows, rules, cut, lacks, named: { classes: [...classes], single: [...single.values()] } }
}

/**
 * Creates a function that counts the workloads that these sides name by their enforcement mode, each workload once.
 */
function createModeCounter({ classes, byHref }: Machines): (sides: readonly Side[]) => ModeCounts {
  const known = new Map<number, ModeCounts>()
  const modesOfClass = (at: number): ModeCounts => {
    const before = known.get(at)
    if (before !== undefined) return before
    const modes = countModes((classes[at] as MachineClass).machines)
    known.set(at, modes)
    return modes
  }
  return (sides) => {
    const whole = new Set(sides.flatMap(({ named }) => named.classes))
    const single = new Set(sides.flatMap(({ named }) => named.single))
    const alone = [...single].filter(({ href }) => !whole.has(byHref.get(href)?.at ?? -1))
    const sums: Partial<Record<EndMode, number>> = countModes(alone)
    for (const at of whole)
      for (const [mode, count] of Object.entries(modesOfClass(at)) as [EndMode, number][])
        sums[mode] = (sums[mode] ?? 0) + count
    return sums
  }
}

/** Returns true if a side names anything, or may name something. */
const isThere = ({ addresses, besides, named }: Side): boolean =>
  countIntervals(addresses) > 0 || besides.length > 0 || named.classes.length > 0 || named.single.length > 0

function listRules({ ruleSets, boundaries }: PolicySnapshot, only: string | undefined): Listed[] {
  const wanted = ruleSets.filter((one) => isInForce(one) && (only === undefined || one.href === only))
  return IN_ORDER.flatMap((type) => [
    ...wanted.flatMap((one) =>
      rulesOf(one, type).map((rule): Listed => ({ type, rule, scopes: one.scopes, ruleSet: one.name })),
    ),
    ...(type === 'deny' && only === undefined ? boundaries.filter(isInForce) : []).map((boundary): Listed => ({
      type,
      rule: { ...boundary, enabled: true, unscoped_consumers: true },
      scopes: [[]],
      ruleSet: null,
    })),
  ])
}

function rowsOf(
  { type, rule, ruleSet }: Listed,
  sides: Record<'inbound' | 'outbound', [Side, Side][]>,
  policy: PolicySnapshot,
  names: ReferenceNames,
): Omit<ResolvedRow, 'enforcedBy'>[] {
  const inbound = joinProducts(sides.inbound.map(toProduct))
  const outbound = joinProducts(sides.outbound.map(toProduct))
  const ids = new Set(inbound.map(idOf))
  const same = new Set(outbound.map(idOf).filter((id) => ids.has(id)))
  const directed: [RowDirection, Product][] = [
    ...inbound.map((one): [RowDirection, Product] => [same.has(idOf(one)) ? 'both' : 'inbound', one]),
    ...outbound.flatMap((one): [RowDirection, Product][] => (same.has(idOf(one)) ? [] : [['outbound', one]])),
  ]
  if (directed.length === 0) return []
  const conditions = conditionsOf(rule, names)
  const ports = readRulePorts(rule.ingress_services, policy)
  const text = nameRule(rule, names)
  return directed.flatMap(([direction, { source, destination, besides }]) =>
    ports.map(({ services, only }) => ({
      action: type,
      direction,
      source,
      destination,
      services,
      only: [...conditions, ...(only === null ? [] : [only])],
      besides,
      ruleSet,
      rule: text,
      href: rule.href,
    })),
  )
}

function conditionsOf(rule: AnyRule, names: ReferenceNames): string[] {
  const fields = Object.entries(conditionFieldsOf(rule)).filter(
    ([field, value]) =>
      NARROWING.has(field) || (!WIDENING.has(field) && !(field === 'network_type' && value === 'all')),
  )
  const programs = (rule.egress_services ?? []).map((service) => quote(nameReference(service, names) ?? service.href))
  return [
    ...describeConditions(Object.fromEntries(fields), names),
    ...(programs.length > 0 ? [`only programs of ${programs.join(' or ')}`] : []),
  ]
}

interface Product {
  source: AddressSet
  destination: AddressSet
  besides: readonly string[]
}

const toProduct = ([source, destination]: [Side, Side]): Product => ({
  source: source.addresses,
  destination: destination.addresses,
  besides: [
    ...source.besides.map((phrase) => `from ${phrase}`),
    ...destination.besides.map((phrase) => `to ${phrase}`),
  ],
})

const textOf = (set: AddressSet): string => nameAddresses(set).join(' ')
const idOf = ({ source, destination, besides }: Product): string =>
  JSON.stringify([textOf(source), textOf(destination), besides])

/**
 * Merges the products of several scopes that have the same source or the same destination. Products without a source or
 * without a destination are left out, unless they name anything besides addresses.
 */
function joinProducts(products: readonly Product[]): Product[] {
  const isEmpty = ({ source, destination, besides }: Product) =>
    besides.length === 0 && (countIntervals(source) === 0 || countIntervals(destination) === 0)
  const whole = products.filter((one) => !isEmpty(one))
  if (whole.length < 2) return whole
  return joinBy(joinBy(whole, 'source', 'destination'), 'destination', 'source')
}

function joinBy(products: readonly Product[], same: 'source' | 'destination', joined: 'source' | 'destination') {
  const groups = new Map<string, Product[]>()
  for (const one of products) {
    // What a product names besides addresses applies only to its own other side, so such products are not merged with
    // others.
    const id = JSON.stringify([textOf(one[same]), one.besides, one.besides.length > 0 ? textOf(one[joined]) : ''])
    groups.set(id, [...(groups.get(id) ?? []), one])
  }
  return [...groups.values()].map((group) => ({
    ...(group[0] as Product),
    [joined]: uniteAddresses(group.map((one) => one[joined])),
  }))
}

/** Maximum number of parts into which all rows are divided. */
const MOST_PARTS = 50_000

/**
 * Divides rows into parts that fit into an answer. For a row with many addresses on both sides, each block of sources
 * is combined with each block of destinations. `cut` is the number of parts beyond the maximum.
 */
export function* divideRows(rows: readonly ResolvedRow[]): Steps<{ parts: RowPart[]; cut: number }> {
  const parts: RowPart[] = []
  let cut = 0
  const seen = new Map<string, number>()
  for (const row of rows) {
    yield
    const nth = seen.get(row.href) ?? 0
    seen.set(row.href, nth + 1)
    const [sources, destinations] = [blocksOf(row.source), blocksOf(row.destination)]
    for (const [at, source] of sources.entries())
      for (const [other, destination] of destinations.entries()) {
        if (parts.length >= MOST_PARTS) cut += 1
        else parts.push({ href: `${row.href}#${nth}.${at}.${other}`, row, source, destination })
      }
  }
  return { parts, cut }
}

function blocksOf(set: AddressSet): string[][] {
  const all = nameAddresses(set)
  if (all.length === 0) return [[]]
  return Array.from({ length: Math.ceil(all.length / MOST_ADDRESSES) }, (_, at) =>
    all.slice(at * MOST_ADDRESSES, (at + 1) * MOST_ADDRESSES),
  )
}
