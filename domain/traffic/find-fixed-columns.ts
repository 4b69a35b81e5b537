import type { TrafficQuery, TrafficSelector } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/labels.js'
import { labelColumnName } from './dimensions.js'
import type { Grouping } from './group-rows.js'

type Keys = Record<string, string | number | null>

/** The arguments of a traffic call that can make a column have the same value in every row. */
interface Asked {
  filters: Pick<TrafficQuery, 'sources' | 'destinations'>
  include_services?: readonly unknown[] | undefined
  policy_decisions?: readonly string[] | undefined
  network?: readonly string[] | undefined
  client_type?: readonly string[] | undefined
  process_name?: readonly string[] | undefined
  user_name?: readonly string[] | undefined
}

/** Arguments that take a list, with the columns that have only one value if the list has a single entry. */
const BY_LIST = {
  include_services: ['port', 'proto'],
  policy_decisions: ['policy_decision'],
  network: ['network'],
  client_type: ['client_type'],
  process_name: ['process_name'],
  user_name: ['user_name'],
} as const

/**
 * Returns the columns that merely repeat the caller's filters, each with its one value, so that an answer can leave
 * them out (D254). A filter makes a column a candidate. The column is returned only if all groups, including those on
 * other pages, have the same value in it, so that every page has the same columns.
 */
export function findFixedColumns(
  names: readonly string[],
  grouping: Grouping<Keys>,
  asked: Asked,
  labels: LabelIndex,
): Record<string, string | number> {
  const labelColumns = (side: 'src' | 'dst') => labels.keys().map((key) => labelColumnName(side, key))
  const candidates = new Set<string>([
    ...columnsOfSide('src', asked.filters.sources.include, labelColumns('src')),
    ...columnsOfSide('dst', asked.filters.destinations.include, labelColumns('dst')),
    ...Object.entries(BY_LIST).flatMap(([argument, columns]) =>
      asked[argument as keyof typeof BY_LIST]?.length === 1 ? columns : [],
    ),
  ])
  const fixed = names
    .filter((name) => candidates.has(name))
    .flatMap((name) => {
      const value = valueOfAll(grouping, name)
      return value === null ? [] : [[name, value] as const]
    })
  return Object.fromEntries(fixed)
}

/**
 * Returns the columns of one end that may have a single value because every block of the filter for this end has a
 * condition on them. A condition on one label may fix other label columns as well: an application may exist at one
 * location only.
 */
function columnsOfSide(
  side: 'src' | 'dst',
  blocks: readonly TrafficSelector[][],
  labelColumns: readonly string[],
): string[] {
  const columnsOf = ({ label, ip_address: ip, fqdn, workload }: TrafficSelector): readonly string[] => [
    ...(label === undefined ? [] : labelColumns),
    ...(ip === undefined ? [] : [`${side}_ip`]),
    ...(fqdn === undefined ? [] : [`${side}_fqdn`]),
    ...(workload === undefined ? [] : [...labelColumns, `${side}_name`, `${side}_hostname`, `${side}_ip`]),
  ]
  const [first = [], ...others] = blocks.map((block) => new Set(block.flatMap(columnsOf)))
  return [...first].filter((column) => others.every((block) => block.has(column)))
}

/**
 * Returns the value that all groups have in a column; null if the values differ or are missing, or if there are no
 * groups.
 */
function valueOfAll(grouping: Grouping<Keys>, name: string): string | number | null {
  if (grouping.size === 0) return null
  const value = grouping.value(0, name) ?? null
  for (let group = 1; group < grouping.size; group++) if (grouping.value(group, name) !== value) return null
  return value
}
