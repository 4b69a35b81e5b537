import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { endColumn, labelColumn, portColumn, protocolNameColumn, textColumn, type Column } from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { joinedLists, type FlowEnd } from './flow-ends.js'

/** Columns by name, as answers show them; null is a missing value. */
export type Columns = Record<string, Column<string | number | null>>

/** Columns of a row other than labels (T8), in the order answers show them. */
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
}

/** The name of an end where it is not its host name: most have one name only, and a column for it would say everything twice. */
const ownName = ({ name, hostname }: FlowEnd): string | null => (name === hostname ? null : name)

/** A name that traffic can be grouped by. */
export interface Dimension {
  /** Columns of the answer; empty for those that the labels of a PCE decide. */
  columns: readonly string[]
  meaning: string
  /** Other words for it, which are accepted as well. */
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
/** A column of one end, `src_ip`; the end also goes by its longer names. */
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
 * What traffic can be grouped by (T8): a column goes by the name that it has in answers, several at once by a name of their own.
 * Whatever else people and tools call the same is a synonym.
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
  own('policy_decision', 'What the active policy decides', 'policy', 'policy_decisions', 'decision'),
  own('process_name', 'Program at the end that reported the flow, with its path', 'process'),
  own('windows_service_name', 'Windows service of that program', 'service_name', 'windows_service'),
  own('user_name', 'User of that program', 'user', 'username'),
  own('flow_direction', 'End that reported the flow: outbound is the source, inbound the destination', 'direction'),
  own('state', 'State of the connections'),
  own('matched_rules', 'Rules that the PCE names', 'rule', 'rules', 'matched_rule'),
  own('draft_policy_decision', 'What the draft policy decides, where the PCE says', 'draft_decision'),
])

/** The names of the contract that come with available_dimensions; each is a dimension or a synonym of one. */
const NAMED =
  'dest_app destination direction fqdn ip_list policy port process proto rule service_name source source_app user'.split(
    ' ',
  )

/** Sums that every answer has. Asked for as a column, they are there already. */
export const SUM_COLUMNS = ['num_connections', 'bytes_in', 'bytes_out', 'first_detected', 'last_detected'] as const
const SUMS = new Set<string>([...SUM_COLUMNS, 'connections'])

const SYNONYMS = new Map(
  Object.entries(DIMENSIONS).flatMap(([name, { synonyms }]) => synonyms.map((synonym) => [synonym, name] as const)),
)

const LABEL = /^(source|src|destination|dest|dst)_(.+)$/isu

/**
 * The names of the columns that dimensions stand for, each once, in the order first named: those of `DIMENSIONS`, or a label as
 * src_<key>, dst_<key> or both as <key>, which is one of `labelKeys` (any case). Names of the contract win over labels of the same
 * name, and these over other synonyms. `unknown` lists what is none of these.
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

/** The columns of these labels at both ends. */
const labelColumns = (keys: readonly string[]): string[] =>
  (['src', 'dst'] as const).flatMap((side) => keys.map((key) => labelColumnName(side, key)))

function labelName(dimension: string, keys: readonly string[]): string | undefined {
  const [, side = '', wanted = ''] = LABEL.exec(dimension) ?? []
  const key = keyNamed(wanted, keys)
  return key === undefined ? undefined : labelColumnName(side.toLowerCase().startsWith('s') ? 'src' : 'dst', key)
}

/** A label key may share its name with a column of the row (`ip`); it then goes by its long name. */
function labelColumnName(side: 'src' | 'dst', key: string): string {
  const name = `${side}_${key}`
  return Object.hasOwn(RAW_COLUMNS, name) ? `${side === 'src' ? 'source' : 'destination'}_${key}` : name
}

/** The columns of these names, as `columnNames` gives them. */
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

/** Watches rows go by and reports which dimensions have data. */
export function createDimensionWatch(encoder: FlowEncoder): {
  see(row: FlowRow): void
  available(): AvailableDimensions
} {
  const columns = Object.entries(
    columnsOf(encoder, [...new Set(NAMED.flatMap((name) => columnsNamed(name, []) ?? []))]),
  )
  const missing = new Map(columns)
  /** 1 at the numbers of ends whose labels have been seen. */
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

/** Default dimensions of get-traffic-flows (T23). */
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
 * The columns that a caller's dimensions stand for, and the label list they were looked up in. Without dimensions: the default ones
 * and every label key of both sides. Throws unknown_group_by {unknown, valid: each dimension once, by its own name}, after trying a
 * fresh label list. `optional`: columns to leave out when nothing has a value there.
 */
export async function resolveGrouping(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  dimensions: readonly string[] | undefined,
): Promise<{ labels: LabelIndex; names: string[]; optional: ReadonlySet<string> }> {
  const recent = await loadLabels(ctx.pce, ctx)
  const first = resolve(recent, dimensions)
  if (first.unknown.length === 0) return { labels: recent, ...first }
  const labels = await loadLabels(ctx.pce, ctx, 'fresh')
  const { unknown, ...found } = resolve(labels, dimensions)
  if (unknown.length === 0) return { labels, ...found }
  throw new ToolError('unknown_group_by', `Traffic cannot be grouped by ${unknown.join(', ')}.`, {
    unknown,
    valid: [...new Set([...Object.keys(DIMENSIONS), ...labelColumns(labels.keys())])],
  })
}

function resolve(labels: LabelIndex, dimensions: readonly string[] | undefined) {
  const { names, unknown } = columnNames(dimensions ?? DEFAULT_GROUPING, labels.keys())
  // The names of workloads come along with their ends; whoever asks for a column by its own name sees it.
  const single = (dimensions ?? []).filter((dimension) => columnsNamed(dimension.trim(), labels.keys())?.length === 1)
  const asked = columnNames(single, labels.keys()).names
  const along = ['src_name', 'dst_name'].filter((name) => !asked.includes(name))
  return { names, unknown, optional: new Set(dimensions === undefined ? names : along) }
}
