import type { TrafficQuery, TrafficSelector } from '../../schemas/pce/traffic.js'
import type { LabelIndex } from '../inventory/labels.js'
import { labelColumnName } from './dimensions.js'
import type { Grouping } from './group-rows.js'

type Keys = Record<string, string | number | null>

/** The parts of a question about traffic that can fix a column. */
interface Asked {
  filters: Pick<TrafficQuery, 'sources' | 'destinations'>
  include_services?: readonly { port?: number | null }[] | undefined
  policy_decisions?: readonly string[] | undefined
  network?: readonly string[] | undefined
  client_type?: readonly string[] | undefined
  process_name?: readonly string[] | undefined
  user_name?: readonly string[] | undefined
}

/** Arguments that are lists of values, and the columns that a single value fixes. */
const BY_LIST = {
  include_services: ['port', 'proto'],
  policy_decisions: ['policy_decision'],
  network: ['network'],
  client_type: ['client_type'],
  process_name: ['process_name'],
  user_name: ['user_name'],
} as const

/**
 * Returns the columns that only repeat the filters of the question, with the one value that they have in every group
 * (D254). The filters say which columns may be fixed, and the groups confirm it: a column counts only if all groups, on
 * this page or not, have the same value in it, so that every page has the same columns.
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
 * Returns the columns of one end that a condition in every block of its filter may fix. One label may fix the others:
 * an application may be at one location.
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

/** Returns the value that all groups have in a column; null if they differ, have none, or there are no groups. */
function valueOfAll(grouping: Grouping<Keys>, name: string): string | number | null {
  if (grouping.size === 0) return null
  const value = grouping.value(0, name) ?? null
  for (let group = 1; group < grouping.size; group++) if (grouping.value(group, name) !== value) return null
  return value
}
