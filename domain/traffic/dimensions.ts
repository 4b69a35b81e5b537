import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { quote } from '../text/escape-text.js'
import {
  endColumn,
  labelColumn,
  portColumn,
  protocolNameColumn,
  recordedColumn,
  textColumn,
  type Column,
} from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { joinedLists, type FlowEnd } from './flow-ends.js'

/** Columns, each stored under the name that it has in answers. A missing value is null. */
export type Columns = Record<string, Column<string | number | null>>

/** All columns of a row except labels (T8), in the order of answers. */
const RAW_COLUMNS: Record<string, (encoder: FlowEncoder) => Column<string | number | null>> = {
  src_ip: (encoder) => endColumn(encoder, 'src', ({ ip }) => ip),
  src_name: (encoder) => endColumn(encoder, 'src', ownName),
  src_hostname: (encoder) => endColumn(encoder, 'src', ({ hostname }) => hostname),
  src_fqdn: (encoder) => endColumn(encoder, 'src', ({ fqdn }) => fqdn),
  dst_ip: (encoder) => endColumn(encoder, 'dst', ({ ip }) => ip),
  dst_name: (encoder) => endColumn(encoder, 'dst', ownName),
  dst_hostname: (encoder) => endColumn(encoder, 'dst', ({ hostname }) => hostname),
  dst_fqdn: (encoder) => endColumn(encoder, 'dst', ({ fqdn }) => fqdn),
  port: () => portColumn,
  proto: () => protocolNameColumn,
  policy_decision: (encoder) => textColumn(encoder, 'decision'),
  process_name: (encoder) => textColumn(encoder, 'process'),
  windows_service_name: (encoder) => textColumn(encoder, 'windowsService'),
  user_name: (encoder) => textColumn(encoder, 'user'),
  src_ip_lists: (encoder) => endColumn(encoder, 'src', joinedLists),
  dst_ip_lists: (encoder) => endColumn(encoder, 'dst', joinedLists),
  flow_direction: (encoder) => textColumn(encoder, 'direction'),
  state: (encoder) => textColumn(encoder, 'state'),
  matched_rules: (encoder) => textColumn(encoder, 'rules'),
  draft_policy_decision: (encoder) => textColumn(encoder, 'draftDecision'),
  network: (encoder) => textColumn(encoder, 'network'),
  client_type: (encoder) => textColumn(encoder, 'clientType'),
  recorded_decision: recordedColumn,
}

/**
 * Returns the name of a workload only if it differs from its host name. For most workloads the two are the same, and a
 * column of names would only repeat the host names.
 */
const ownName = ({ name, hostname }: FlowEnd): string | null => (name === hostname ? null : name)

/** A dimension: a name by which callers can group traffic. */
export interface Dimension {
  /**
   * The names of the columns that the dimension adds to the answer. Empty if they depend on the label keys of the PCE.
   */
  columns: readonly string[]
  meaning: string
  /** Other accepted names for the same dimension. */
  synonyms: readonly string[]
}

const own = (column: string, meaning: string, ...synonyms: string[]): [string, Dimension] => [
  column,
  { columns: [column], meaning, synonyms },
]
const several = (name: string, columns: string[], meaning: string, ...synonyms: string[]): [string, Dimension] => [
  name,
  { columns, meaning, synonyms },
]
/**
 * Defines a dimension for a column of the source or destination, such as `src_ip`, with longer forms such as
 * `source_ip` as synonyms.
 */
const ofEnd = (column: string, meaning: string, ...synonyms: string[]): [string, Dimension] => {
  const [, end, rest] = /^(src|dst)_(.+)$/.exec(column) ?? []
  return own(
    column,
    meaning,
    ...(end === 'src' ? ['source'] : ['dest', 'destination']).map((side) => `${side}_${rest}`),
    ...synonyms,
  )
}

/**
 * All dimensions by which traffic can be grouped (T8). A dimension for a single column has the same name as the column
 * in answers; a dimension for several columns has a name of its own. Other common names are synonyms.
 */
export const DIMENSIONS: Readonly<Record<string, Dimension>> = Object.fromEntries([
  several('source', ['src_ip', 'src_name', 'src_hostname'], 'Source: address and names', 'src'),
  several(
    'destination',
    ['dst_ip', 'dst_name', 'dst_hostname', 'dst_fqdn'],
    'Destination: address and names',
    'dest',
    'dst',
  ),
  several('source_app', ['src_app', 'src_env'], 'Application of the source: its app and env labels'),
  several('dest_app', ['dst_app', 'dst_env'], 'Application of the destination', 'destination_app'),
  several('ip_list', ['src_ip_lists', 'dst_ip_lists'], 'IP lists that contain the ends', 'ip_lists', 'iplist'),
  several('service', ['port', 'proto'], 'Port and protocol'),
  several('labels', [], 'All labels of both ends'),
  ofEnd('src_ip', 'Address of the source'),
  ofEnd('src_name', 'Name of the workload at the source, where it is not its host name'),
  ofEnd('src_hostname', 'Host name of the source, if the PCE has a workload for it'),
  ofEnd('src_fqdn', 'Domain name of the source'),
  ofEnd('src_ip_lists', 'IP lists that contain the source'),
  ofEnd('dst_ip', 'Address of the destination'),
  ofEnd('dst_name', 'Name of the workload at the destination, where it is not its host name'),
  ofEnd('dst_hostname', 'Host name of the destination, if the PCE has a workload for it'),
  ofEnd('dst_fqdn', 'Domain name of the destination', 'fqdn'),
  ofEnd('dst_ip_lists', 'IP lists that contain the destination'),
  own('port', 'Port of the destination; 0 for protocols without ports', 'dst_port', 'dest_port', 'destination_port'),
  own('proto', 'tcp, udp, icmp …, otherwise the IANA number', 'protocol'),
  own(
    'policy_decision',
    'What the active policy decides, or as decide_by says',
    'policy',
    'policy_decisions',
    'decision',
  ),
  own('process_name', 'Program at the end that reported the flow, with its path', 'process'),
  own('windows_service_name', 'Windows service of that program', 'service_name', 'windows_service'),
  own('user_name', 'User of that program', 'user', 'username'),
  own('flow_direction', 'End that reported the flow: outbound is the source, inbound the destination', 'direction'),
  own('state', 'State of the connections'),
  own('matched_rules', 'Rules that the PCE names', 'rule', 'rules', 'matched_rule'),
  own('network', 'Network of the end that reported the flow; External: it is off the corporate network'),
  own('client_type', 'What reported the flow: server, endpoint, flowlink or scanner'),
  own('draft_policy_decision', 'What the draft policy decides, where the PCE says', 'draft_decision'),
  own('recorded_decision', 'What the PCE recorded, whatever decide_by is'),
])

/**
 * The names that the specification lists for available_dimensions. Each of them is a dimension or a synonym of a
 * dimension.
 */
const NAMED =
  'client_type dest_app destination direction fqdn ip_list network policy port process proto rule service_name source source_app user'.split(
    ' ',
  )

/** The totals that every answer includes. Requesting one of them as a dimension has no effect. */
export const SUM_COLUMNS = ['num_connections', 'bytes_in', 'bytes_out', 'first_detected', 'last_detected'] as const
const SUMS = new Set<string>([...SUM_COLUMNS, 'connections'])

const SYNONYMS = new Map(
  Object.entries(DIMENSIONS).flatMap(([name, { synonyms }]) => synonyms.map((synonym) => [synonym, name] as const)),
)

const LABEL = /^(source|src|destination|dest|dst)_(.+)$/isu

/**
 * Converts dimensions to column names, each listed once, in the order of first mention. A dimension is a name in
 * `DIMENSIONS`, or a label key from `labelKeys` (in any case), written src_<key>, dst_<key>, or <key> for both ends. A
 * name can have several meanings: names from the specification come first, then label keys, then other synonyms.
 * `unknown` lists the names that are not dimensions.
 */
function columnNames(
  dimensions: readonly string[],
  labelKeys: readonly string[],
): { names: string[]; unknown: string[] } {
  const names = new Set<string>()
  const unknown = new Set<string>()
  for (const dimension of dimensions) {
    const columns = columnsNamed(dimension.trim(), labelKeys)
    if (columns === null) unknown.add(dimension)
    else for (const column of columns) names.add(column)
  }
  return { names: [...names], unknown: [...unknown] }
}

function columnsNamed(wanted: string, labelKeys: readonly string[]): readonly string[] | null {
  const text = wanted.toLowerCase()
  if (text === 'labels') return labelColumns(labelKeys)
  const name = Object.hasOwn(DIMENSIONS, text) ? text : SYNONYMS.get(text)
  const columns = name === undefined ? null : (DIMENSIONS[name]?.columns ?? null)
  if (name === text || NAMED.includes(text)) return columns
  const label = labelName(wanted, labelKeys)
  if (label !== undefined) return [label]
  const key = keyNamed(wanted, labelKeys)
  if (key !== undefined) return labelColumns([key])
  return SUMS.has(text) ? [] : columns
}

const keyNamed = (wanted: string, keys: readonly string[]): string | undefined =>
  keys.find((known) => known === wanted) ?? keys.find((known) => known.toLowerCase() === wanted.toLowerCase())

/**
 * Returns the names of the columns for the given label keys: first those for the source, then those for the
 * destination.
 */
const labelColumns = (keys: readonly string[]): string[] =>
  (['src', 'dst'] as const).flatMap((side) => keys.map((key) => labelColumnName(side, key)))

function labelName(dimension: string, keys: readonly string[]): string | undefined {
  const [, side = '', wanted = ''] = LABEL.exec(dimension) ?? []
  const key = keyNamed(wanted, keys)
  return key === undefined ? undefined : labelColumnName(side.toLowerCase().startsWith('s') ? 'src' : 'dst', key)
}

/**
 * Returns the name of the column for a label key of the source or destination. If the short name already belongs to
 * another column (such as `src_ip` for a label key `ip`), the long form (`source_ip`) is used.
 */
export function labelColumnName(side: 'src' | 'dst', key: string): string {
  const name = `${side}_${key}`
  return Object.hasOwn(RAW_COLUMNS, name) ? `${side === 'src' ? 'source' : 'destination'}_${key}` : name
}

/** Returns true for a column that holds a label of one end. */
export const isLabelColumn = (name: string): boolean => !Object.hasOwn(RAW_COLUMNS, name)

/** Builds the columns whose names `columnNames` returned. */
export function columnsOf(encoder: FlowEncoder, names: readonly string[]): Columns {
  return Object.fromEntries(
    names.map((name) => {
      const raw = Object.hasOwn(RAW_COLUMNS, name) ? RAW_COLUMNS[name] : undefined
      const side = name.startsWith('s') ? 'src' : 'dst'
      return [name, raw?.(encoder) ?? labelColumn(encoder, side, name.slice(name.indexOf('_') + 1))]
    }),
  )
}

export interface AvailableDimensions {
  named: string[]
  labels: string[]
  usage: string
}

/**
 * Creates a recorder. `see` takes each row of an answer; `available` then returns the dimensions for which these rows
 * have data.
 */
export function createDimensionWatch(encoder: FlowEncoder): {
  see(row: FlowRow): void
  available(): AvailableDimensions
} {
  const columns = Object.entries(
    columnsOf(encoder, [...new Set(NAMED.flatMap((name) => columnsNamed(name, []) ?? []))]),
  )
  const missing = new Map(columns)
  /** At the number of each source or destination: 1 if its label keys have been recorded, otherwise 0. */
  let seen = new Uint8Array(1024)
  const labels = new Set<string>()
  const look = (end: number) => {
    if (seen[end] === 1) return
    if (end >= seen.length) {
      const longer = new Uint8Array(Math.max(2 * seen.length, end + 1))
      longer.set(seen)
      seen = longer
    }
    seen[end] = 1
    for (const key in encoder.ends.end(end).labels) labels.add(key)
  }
  return {
    see(row) {
      for (const [name, column] of missing) if (column.value(column.code(row)) !== null) missing.delete(name)
      look(row.src)
      look(row.dst)
    },
    available: () => ({
      named: NAMED.filter((name) => columnsNamed(name, [])?.some((column) => !missing.has(column))),
      labels: [...labels].sort(),
      usage: 'group_by of get-traffic-flows takes any of these, and a label of one end as src_<key> or dst_<key>.',
    }),
  }
}

/** The default dimensions of get-traffic-flows (T23). */
export const DEFAULT_GROUPING = [
  'source',
  'destination',
  'port',
  'proto',
  'policy_decision',
  'process_name',
  'windows_service_name',
  'user_name',
  'ip_list',
  'labels',
] as const

/**
 * Converts the dimensions that a caller requested to columns. If the caller requested none, the default dimensions are
 * used, together with every label key of both ends. If a name is unknown, the labels are read again before the function
 * fails. The result includes the labels that were used. `optional` lists the columns to leave out if no row has a value
 * for them.
 *
 * @throws {ToolError} unknown_group_by with `unknown` and `valid`, which lists each dimension once, without synonyms.
 */
export async function resolveGrouping(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  dimensions: readonly string[] | undefined,
): Promise<{
  labels: LabelIndex
  names: string[]
  optional: ReadonlySet<string>
  groupedBy: Readonly<Record<string, readonly string[]>>
}> {
  const recent = await loadLabels(ctx.pce, ctx)
  const first = resolve(recent, dimensions)
  if (first.unknown.length === 0) return { labels: recent, ...first }
  const labels = await loadLabels(ctx.pce, ctx, 'fresh')
  const { unknown, ...found } = resolve(labels, dimensions)
  if (unknown.length === 0) return { labels, ...found }
  throw new ToolError('unknown_group_by', `Traffic cannot be grouped by ${unknown.map(quote).join(', ')}.`, {
    unknown,
    valid: [...new Set([...Object.keys(DIMENSIONS), ...labelColumns(labels.keys())])],
  })
}

function resolve(labels: LabelIndex, dimensions: readonly string[] | undefined) {
  const { names, unknown } = columnNames(dimensions ?? DEFAULT_GROUPING, labels.keys())
  // The dimensions for a whole source or destination include the columns src_name and dst_name. These are optional
  // unless the caller asked for them by name.
  const single = (dimensions ?? []).filter((dimension) => columnsNamed(dimension.trim(), labels.keys())?.length === 1)
  const asked = columnNames(single, labels.keys()).names
  const along = ['src_name', 'dst_name'].filter((name) => !asked.includes(name))
  const groupedBy = Object.fromEntries(
    (dimensions ?? []).flatMap((dimension) => {
      const columns = columnsNamed(dimension.trim(), labels.keys()) ?? []
      return columns.length === 0 || columns.includes(dimension.trim()) ? [] : [[dimension, columns]]
    }),
  )
  return { names, unknown, optional: new Set(dimensions === undefined ? names : along), groupedBy }
}
