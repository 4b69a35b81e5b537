import { Type, type Static } from '@sinclair/typebox'
import {
  ROW_DIRECTIONS,
  type ResolvedRows,
  type RowDirection,
  type RowPart,
} from '../../domain/history/resolve-rows.js'
import type { Counted, ResolvedPolicy } from '../../domain/history/resolve-policy.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { writeCsvLine } from '../../domain/text/write-csv.js'
import { Count, Counts, StringEnum, Text } from '../../schemas/common.js'
import { requireFields } from './select-fields.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'

/**
 * A row of resolve-policy. It stands for traffic from every address of `source` to every address of `destination`, on
 * every listed service.
 */
export const ResolvedRowOut = Type.Object({
  action: StringEnum(RULE_TYPES, { description: 'What the rule does' }),
  direction: StringEnum(ROW_DIRECTIONS, { description: 'Where it is enforced; both: the same at either end' }),
  source: Type.Array(Type.String(), { description: 'Addresses, networks and ranges' }),
  destination: Type.Array(Type.String(), { description: 'The same' }),
  services: Type.Array(Type.String(), { description: '443/tcp …; all: every protocol' }),
  only: Type.Optional(Type.Array(Type.String(), { description: 'Matches only so; no address or port says it' })),
  besides: Type.Optional(Type.Array(Type.String(), { description: 'Also named, and in no address here' })),
  enforced_by: Type.Optional(Counts('Workloads that enforce the rule there, by mode of now')),
  rule_set: Type.Optional(Text('Absent: an enforcement boundary')),
  rule: Type.Optional(Text('By labels and names')),
  href: Text('Of the rule'),
})
type ResolvedRowOut = Static<typeof ResolvedRowOut>

/** The fields of a row, in the order of the CSV columns. */
const RESOLVED_FIELDS = Object.keys(ResolvedRowOut.properties) as (keyof ResolvedRowOut)[]

/** The fields that change the meaning of the other fields of a row. They are shown even if they were not requested. */
const QUALIFYING: readonly string[] = ['action', 'only', 'besides']

/**
 * Returns the fields to show if these were requested, in the order of the CSV columns.
 *
 * @throws {ToolError} invalid_argument for a field that no row has.
 */
export function chooseResolvedFields(asked: readonly string[] | undefined): readonly (keyof ResolvedRowOut)[] {
  if (asked === undefined) return RESOLVED_FIELDS
  requireFields(asked, RESOLVED_FIELDS)
  return RESOLVED_FIELDS.filter((field) => asked.includes(field) || QUALIFYING.includes(field))
}

export const NotResolvedOut = Type.Object({
  what: Text('Kind'),
  count: Count('How many'),
  examples: Type.Optional(Type.Array(Type.String(), { description: 'The first' })),
  means: Text('For the rows'),
})

/**
 * Shows a row. The rule in words, whose labels repeat what the addresses say, and the modes of the workloads that
 * enforce it are included only if all was requested.
 */
export function showRow({ row, source, destination }: RowPart, isWhole: boolean): ResolvedRowOut {
  const { action, direction, services, enforcedBy, only, besides, ruleSet, rule, href } = row
  return {
    action,
    direction,
    source: [...source],
    destination: [...destination],
    services: [...services],
    ...(only.length > 0 && { only: [...only] }),
    ...(besides.length > 0 && { besides: [...besides] }),
    ...(isWhole && { enforced_by: { ...enforcedBy } }),
    ...(ruleSet !== null && { rule_set: ruleSet }),
    ...(isWhole && { rule }),
    href,
  }
}

/** Separates several values in one CSV cell. No address, port or phrase in this answer contains it. */
const IN_CELL = '; '
/** The line break of RFC 4180. */
const LINE_END = '\r\n'

/**
 * What a line of the CSV says of the file: a file outlives the answer around it, so each line says which policy it is
 * from and when it was made.
 */
const RECORD_COLUMNS = ['about', 'policy_version', 'resolved_at', 'row'] as const
export type CsvRecord = Readonly<Record<(typeof RECORD_COLUMNS)[number], string>>

/** Writes the given columns of a row, and what it says of the file, as one line of CSV, including the line break. */
export const writeRow = (row: ResolvedRowOut, columns: readonly (keyof ResolvedRowOut)[], record: CsvRecord): string =>
  writeLine([...columns.map((column) => writeValue(row[column])), ...RECORD_COLUMNS.map((column) => record[column])])

/** Writes the header line of the CSV, including the line break. */
export const writeHeader = (columns: readonly string[]): string => writeLine([...columns, ...RECORD_COLUMNS])

const writeLine = (cells: readonly string[]): string => `${writeCsvLine(cells)}${LINE_END}`

function writeValue(value: ResolvedRowOut[keyof ResolvedRowOut]): string {
  if (value === undefined || typeof value === 'string') return value ?? ''
  const parts = Array.isArray(value) ? value : Object.entries(value).map(([mode, count]) => `${mode}: ${count}`)
  return parts.join(IN_CELL)
}

const MEANINGS = {
  without_address: 'rules name these workloads; no row has them',
  offline: 'their last addresses are in the rows; the PCE takes them out of policy while they are offline (P119)',
  shared_address: 'two workloads have one address: a row cannot tell them apart',
  kubernetes: 'their addresses of now are in the rows, and change whenever they are started',
  domain_names: 'rules that name domain names; their addresses are not known',
  ip_lists: 'rules with IP lists that are empty or could not be read whole',
  virtual_services: 'rules that name virtual services or servers; what stands behind them is not in the rows',
  subnets: 'rules for the whole subnets of workloads; the rows have the addresses of the workloads',
  all_but_some: 'rules for all addresses but some; the rows have none of them',
  undecided: 'rules of which it is not known whether they name some workloads; see besides',
  conditions: 'rules that match only users, programs, machines or networks, or whose services are not known; see only',
} as const satisfies Record<keyof ResolvedPolicy['named'] | keyof ResolvedRows['lacks'], string>

/** Lists what could not be written as addresses and ports, and why. The list is empty if everything could. */
export function showNotResolved(resolved: ResolvedPolicy): Static<typeof NotResolvedOut>[] {
  const { named, lacks, ipTables, unreadPods, cut, partsCut } = resolved
  const workloads = (Object.entries(named) as [keyof typeof named, Counted][])
    .filter(([, { total }]) => total > 0)
    .map(([what, { total, examples }]) => ({
      what,
      count: total,
      examples: [...examples],
      means: MEANINGS[what],
    }))
  const rules = (Object.entries(lacks) as [keyof typeof lacks, number][]).map(([what, count]) => ({
    what,
    count,
    means: MEANINGS[what],
  }))
  const others = [
    {
      what: 'ip_tables',
      count: ipTables,
      means: 'rules in the words of iptables: they can allow or block anything (P19)',
    },
    {
      what: 'kubernetes_unread',
      count: unreadPods === null ? 0 : 1,
      means: `Kubernetes workloads could not be read: ${unreadPods}`,
    },
    { what: 'rules_left_out', count: cut, means: 'rules beyond what one answer can hold: ask for a smaller part' },
    { what: 'rows_left_out', count: partsCut, means: 'rows beyond what can be listed: ask for a smaller part' },
  ].filter(({ count }) => count > 0)
  return [...workloads, ...rules, ...others]
}

export const ResolvedWorkloadsOut = Type.Object(
  {
    total: Count('With these labels'),
    modes: Counts('By enforcement mode; none: no VEN, enforces nothing'),
    address_ranges: Count('Into which their addresses merge'),
  },
  { description: 'Whose rules these are' },
)

/** Returns a sentence that says how many rows the application or labels in question have, and what they contain. */
export function describeResolved(
  subject: string,
  version: string,
  { parts, rules, workloads, ruleSet }: ResolvedPolicy,
  direction: RowDirection,
) {
  const rows = countOf(parts.length, direction === 'both' ? 'row' : `${direction} row`)
  if (ruleSet === undefined && workloads.total === 0)
    return `No workload has ${subject}: nobody enforces a rule for it.`
  const whose = ruleSet === undefined ? ` at ${countOf(workloads.total, 'workload')}` : ''
  if (rules === 0) {
    const rule = direction === 'both' ? 'rule' : `${direction} rule`
    return `No ${rule} of ${version} in force is about ${subject}${whose}.`
  }
  return `${rows} of ${countOf(rules, 'rule')} of ${version} about ${subject}${whose}, by the labels and addresses of now.`
}

/** What a reader must know in order to apply the rows to another firewall. */
export const HOW_TO_READ =
  'The first that applies decides: what VENs keep open (DHCP, ICMPv6), override_deny, allow, deny, then the default of the mode (full blocks, selective lets pass, visibility_only reports, idle and none enforce nothing). A connection passes if both ends let it pass.'
