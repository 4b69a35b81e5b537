import type { FlowRow } from './flow-rows.js'

/** The named grouping dimensions and what of a row must be there for one to be of use (tools contract, A8). */
const NAMED: Record<string, (row: FlowRow) => boolean> = {
  process: (row) => row.process_name !== null,
  service_name: (row) => row.windows_service_name !== null,
  user: (row) => row.user_name !== null,
  source: (row) => row.src.ip !== null || row.src.hostname !== null,
  source_app: (row) => 'app' in row.src.labels,
  destination: (row) => row.dst.ip !== null || row.dst.hostname !== null || row.dst.fqdn !== null,
  dest_app: (row) => 'app' in row.dst.labels,
  fqdn: (row) => row.dst.fqdn !== null || row.src.fqdn !== null,
  ip_list: (row) => row.src.ip_lists !== null || row.dst.ip_lists !== null,
  port: (row) => row.port !== null,
  proto: (row) => row.proto !== null,
  policy: () => true,
  rule: (row) => row.matched_rules !== null,
  direction: (row) => row.flow_direction !== null,
}

export interface AvailableDimensions {
  named: string[]
  labels: string[]
  usage: string
}

/** Watches rows go by and tells which dimensions have anything to group by. */
export function createDimensionWatch(): { see(row: FlowRow): void; available(): AvailableDimensions } {
  const missing = new Map(Object.entries(NAMED))
  const labels = new Set<string>()
  return {
    see(row) {
      for (const [name, usable] of missing) if (usable(row)) missing.delete(name)
      for (const key in row.src.labels) labels.add(key)
      for (const key in row.dst.labels) labels.add(key)
    },
    available: () => ({
      named: Object.keys(NAMED)
        .filter((name) => !missing.has(name))
        .sort(),
      labels: [...labels].sort(),
      usage: 'Group by a named dimension, or by a label as source_<key> or destination_<key>.',
    }),
  }
}
