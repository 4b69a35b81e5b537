import type { World } from '../world.js'

const DAY_MS = 86_400_000
/** The number of days for which the PCE keeps flows. */
const KEPT_DAYS = 97
const LIMIT_GB = 100
/** The size of one stored observation with its indexes, in bytes. */
const ROW_BYTES = 400
const GIB = 2 ** 30

interface Share {
  oldestDay: number | null
  rows: number
}

/** Reports how many days of traffic the database contains today, and how much space they take (P49). */
export function measureDatabase(world: World): Record<string, unknown> {
  const today = Math.floor(world.clock() / DAY_MS)
  const firstKept = today - KEPT_DAYS + 1
  const endpoints = new Set(
    world.workloads
      .live()
      .filter(({ ven }) => (ven as { ven_type?: string } | null | undefined)?.ven_type === 'endpoint')
      .map(({ href }) => href),
  )
  const server: Share = { oldestDay: null, rows: 0 }
  const endpoint: Share = { oldestDay: null, rows: 0 }
  for (const { src, dst, flowDirection, firstDay, lastDay, everyDays } of world.conversations) {
    // Occurrences before the retention period are no longer stored, and those after today have not been observed yet.
    const from = firstDay + Math.max(0, Math.ceil((firstKept - firstDay) / everyDays)) * everyDays
    const to = Math.min(lastDay ?? today, today)
    if (from > to) continue
    const reporter = flowDirection === 'inbound' ? dst : src
    const share = 'workload' in reporter && endpoints.has(reporter.workload) ? endpoint : server
    share.rows += Math.floor((to - from) / everyDays) + 1
    share.oldestDay = Math.min(share.oldestDay ?? from, from)
  }
  const whole: Share = { oldestDay: earliest(server.oldestDay, endpoint.oldestDay), rows: server.rows + endpoint.rows }
  const days = daysOf(whole, today)
  return {
    flows_days: days,
    flows_days_limit: KEPT_DAYS,
    ...oldest(whole),
    flows_size_gb: sizeOf(whole),
    flows_size_gb_limit: LIMIT_GB,
    server: describeShare(server, today),
    endpoint: describeShare(endpoint, today),
    backlog: { total_disk_used_gb: 0, total_file_count: 0 },
    updated_at: world.now(),
  }
}

function describeShare(share: Share, today: number): Record<string, unknown> {
  const days = daysOf(share, today)
  return {
    num_flows_days: days,
    num_flows_days_limit: KEPT_DAYS,
    ...oldest(share),
    flows_size_gb: sizeOf(share),
    flows_size_gb_limit: LIMIT_GB,
    num_daily_tables: days,
    num_weekly_tables: Math.ceil(days / 7),
  }
}

const daysOf = ({ oldestDay }: Share, today: number) => (oldestDay === null ? 0 : today - oldestDay + 1)

const sizeOf = ({ rows }: Share) => (rows * ROW_BYTES) / GIB

const oldest = ({ oldestDay }: Share) =>
  oldestDay === null ? {} : { flows_oldest_day: new Date(oldestDay * DAY_MS).toISOString().slice(0, 10) }

function earliest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}
