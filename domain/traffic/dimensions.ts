import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { endColumn, labelColumn, portColumn, protocolNameColumn, textColumn, type Column } from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { joinedLists } from './flow-ends.js'

/** Columns by name, as answers show them; null is a missing value. */
export type Columns = Record<string, Column<string | number | null>>

/** Columns of a row other than labels (T8), in the order answers show them. */
const RAW_COLUMNS: Record<string, (encoder: FlowEncoder) => Column<string | number | null>> = {
  src_ip: (encoder) => endColumn(encoder, 'src', ({ ip }) => ip),
  src_hostname: (encoder) => endColumn(encoder, 'src', ({ hostname }) => hostname),
  src_fqdn: (encoder) => endColumn(encoder, 'src', ({ fqdn }) => fqdn),
  dst_ip: (encoder) => endColumn(encoder, 'dst', ({ ip }) => ip),
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

/** The named dimensions and the columns each stands for (T8). */
const NAMED_DIMENSIONS: Record<string, readonly string[]> = {
  process: ['process_name'],
  service_name: ['windows_service_name'],
  user: ['user_name'],
  source: ['src_ip', 'src_hostname'],
  source_app: ['src_app', 'src_env'],
  destination: ['dst_ip', 'dst_hostname', 'dst_fqdn'],
  dest_app: ['dst_app', 'dst_env'],
  fqdn: ['dst_fqdn'],
  ip_list: ['src_ip_lists', 'dst_ip_lists'],
  port: ['port'],
  proto: ['proto'],
  policy: ['policy_decision'],
  rule: ['matched_rules'],
  direction: ['flow_direction'],
}

const LABEL = /^(source|src|destination|dest|dst)_(.+)$/isu

/**
 * The names of the columns that dimensions stand for, each once, in the order first named: a named dimension, a raw column, or a
 * label as source_<key>, src_<key>, destination_<key>, dest_<key> or dst_<key>, whose key is one of `labelKeys` (any case). Named
 * dimensions win over labels of the same name. `unknown` lists what is none of these.
 */
function columnNames(
  dimensions: readonly string[],
  labelKeys: readonly string[],
): { names: string[]; unknown: string[] } {
  const names = new Set<string>()
  const unknown: string[] = []
  for (const dimension of dimensions) {
    const text = dimension.trim().toLowerCase()
    const label = labelName(dimension.trim(), labelKeys)
    if (Object.hasOwn(NAMED_DIMENSIONS, text)) for (const name of NAMED_DIMENSIONS[text] ?? []) names.add(name)
    else if (Object.hasOwn(RAW_COLUMNS, text)) names.add(text)
    else if (label !== undefined) names.add(label)
    else unknown.push(dimension)
  }
  return { names: [...names], unknown }
}

function labelName(dimension: string, keys: readonly string[]): string | undefined {
  const [, side = '', wanted = ''] = LABEL.exec(dimension) ?? []
  const key =
    keys.find((known) => known === wanted) ?? keys.find((known) => known.toLowerCase() === wanted.toLowerCase())
  if (key === undefined) return undefined
  const isSource = side.toLowerCase().startsWith('s')
  const name = `${isSource ? 'src' : 'dst'}_${key}`
  // A label key may share its name with a column of the row (`ip`); it then goes by its long name.
  return Object.hasOwn(RAW_COLUMNS, name) ? `${isSource ? 'source' : 'destination'}_${key}` : name
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
  const columns = Object.entries(columnsOf(encoder, [...new Set(Object.values(NAMED_DIMENSIONS).flat())]))
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
      named: Object.keys(NAMED_DIMENSIONS)
        .filter((name) => NAMED_DIMENSIONS[name]?.some((column) => !missing.has(column)))
        .sort(),
      labels: [...labels].sort(),
      usage: 'Group by a named dimension, or by a label as source_<key> or destination_<key>.',
    }),
  }
}

/** Default dimensions of get-traffic-flows (T23). */
export const DEFAULT_GROUPING = [
  'source',
  'destination',
  'port',
  'proto',
  'policy',
  'process',
  'service_name',
  'user',
  'ip_list',
] as const

/**
 * The columns that a caller's dimensions stand for, and the label list they were looked up in. Without dimensions: the default ones
 * and every label key of both sides. Throws unknown_group_by {unknown, valid}, after trying a fresh label list.
 */
export async function resolveGrouping(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  dimensions: readonly string[] | undefined,
): Promise<{ labels: LabelIndex; names: string[] }> {
  const recent = await loadLabels(ctx.pce, ctx)
  const first = resolve(recent, dimensions)
  if (first.unknown.length === 0) return { labels: recent, names: first.names }
  const labels = await loadLabels(ctx.pce, ctx, 'fresh')
  const { names, unknown } = resolve(labels, dimensions)
  if (unknown.length === 0) return { labels, names }
  throw new ToolError('unknown_group_by', `Traffic cannot be grouped by ${unknown.join(', ')}.`, {
    unknown,
    valid: [
      ...new Set([
        ...Object.keys(NAMED_DIMENSIONS),
        ...labels.keys().flatMap((key) => [`source_${key}`, `destination_${key}`]),
        ...Object.keys(RAW_COLUMNS),
      ]),
    ],
  })
}

function resolve(labels: LabelIndex, dimensions: readonly string[] | undefined) {
  const keys = labels.keys()
  if (dimensions !== undefined) return columnNames(dimensions, keys)
  return columnNames(
    [...DEFAULT_GROUPING, ...['src', 'dst'].flatMap((side) => keys.map((key) => `${side}_${key}`))],
    keys,
  )
}
