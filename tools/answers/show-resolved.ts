import { Type, type Static } from '@sinclair/typebox'
import { ROW_DIRECTIONS, type ResolvedRows, type RowPart } from '../../domain/history/resolve-rows.js'
import type { Counted, ResolvedPolicy } from '../../domain/history/resolve-policy.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { writeCsvLine } from '../../domain/text/write-csv.js'
import { Count, Counts, StringEnum, Text } from '../../schemas/common.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'

/** A row of resolve-policy: every address of `source` to every one of `destination`, on every service. */
export const ResolvedRowOut = Type.Object({
  action: StringEnum(RULE_TYPES, { description: 'What the rule does' }),
  direction: StringEnum(ROW_DIRECTIONS, { description: 'Where it is enforced; both: the same at either end' }),
  source: Type.Array(Type.String(), { description: 'Addresses, networks and ranges' }),
  destination: Type.Array(Type.String(), { description: 'The same' }),
  services: Type.Array(Type.String(), { description: '443/tcp …; all: every protocol' }),
  only: Type.Optional(Type.Array(Type.String(), { description: 'Matches only so; no address or port says it' })),
  besides: Type.Optional(Type.Array(Type.String(), { description: 'Also named, and in no address here' })),
  rule_set: Type.Optional(Text('Absent: an enforcement boundary')),
  rule: Type.Optional(Text('By labels and names')),
  href: Text('Of the rule'),
})
type ResolvedRowOut = Static<typeof ResolvedRowOut>

/** The fields of a row, in the order in which they are columns of CSV. */
export const RESOLVED_FIELDS = Object.keys(ResolvedRowOut.properties) as (keyof ResolvedRowOut)[]

export const NotResolvedOut = Type.Object({
  what: Text('Kind'),
  count: Count('How many'),
  examples: Type.Optional(Type.Array(Type.String(), { description: 'The first' })),
  means: Text('For the rows'),
})

/** Shows a row. The rule in words is left out unless it is wanted, because labels say the same as addresses. */
export function showRow({ row, source, destination }: RowPart, withRule: boolean): ResolvedRowOut {
  const { action, direction, services, only, besides, ruleSet, rule, href } = row
  return {
    action,
    direction,
    source: [...source],
    destination: [...destination],
    services: [...services],
    ...(only.length > 0 && { only: [...only] }),
    ...(besides.length > 0 && { besides: [...besides] }),
    ...(ruleSet !== null && { rule_set: ruleSet }),
    ...(withRule && { rule }),
    href,
  }
}

/** The separator of several values in one cell; no address, port or phrase of this answer needs it otherwise. */
const IN_CELL = '; '

/** Writes a row as a line of CSV with these columns. */
export const writeRow = (row: ResolvedRowOut, columns: readonly (keyof ResolvedRowOut)[]): string =>
  writeCsvLine(columns.map((column) => [row[column] ?? ''].flat().join(IN_CELL)))

const MEANINGS = {
  without_address: 'rules name these workloads; no row has them',
  offline: 'their last addresses are in the rows; the PCE takes them out of policy while they are offline (P119)',
  shared_address: 'two workloads have one address: a row cannot tell them apart',
  kubernetes: 'their addresses change whenever they are started',
  domain_names: 'rules that name domain names; their addresses are not known',
  ip_lists: 'rules with IP lists that are empty or could not be read whole',
  virtual_services: 'rules that name virtual services or servers; what stands behind them is not in the rows',
  subnets: 'rules for the whole subnets of workloads; the rows have the addresses of the workloads',
  all_but_some: 'rules for all addresses but some; the rows have none of them',
  undecided: 'rules of which it is not known whether they name some workloads; see besides',
  conditions: 'rules that match only users, programs, machines or networks, or whose services are not known; see only',
} as const satisfies Record<keyof ResolvedPolicy['named'] | keyof ResolvedRows['lacks'], string>

/** Lists what of the rules could not be written as addresses and ports. The list is empty if everything could. */
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

/** Describes the rows of a subject in a sentence. */
export function describeResolved(
  subject: string,
  version: string,
  { parts, rules, workloads, ruleSet }: ResolvedPolicy,
) {
  const rows = countOf(parts.length, 'row')
  if (ruleSet === undefined && workloads.total === 0)
    return `No workload has ${subject}: nobody enforces a rule for it.`
  const whose = ruleSet === undefined ? ` at ${countOf(workloads.total, 'workload')}` : ''
  if (rules === 0) return `No rule of ${version} in force is about ${subject}${whose}.`
  return `${rows} of ${countOf(rules, 'rule')} of ${version} about ${subject}${whose}, by the labels and addresses of now.`
}

/** What a reader needs to apply rows. */
export const HOW_TO_READ =
  'The first that applies decides: what VENs keep open (DHCP, ICMPv6), override_deny, allow, deny, then the default of the mode (full blocks, selective lets pass, visibility_only reports, idle and none enforce nothing). A connection passes if both ends let it pass.'
