import type { Workload } from '../../schemas/pce/workload.js'
import { isManaged } from './workloads.js'

const DAY_MS = 86_400_000

/** The facts by which the PCE shows whether a VEN still answers. A fact that the PCE does not report is null. */
interface Heard {
  /** The status of the VEN, such as `active` or `suspended`. */
  status: string | null
  online: boolean | null
  /** The time of the last heartbeat. */
  heartbeatAt: string | null
}

/**
 * Returns true if the PCE counts the VEN as online although its last heartbeat is more than a day old. Heartbeats
 * arrive every five minutes (P78). `now` is in milliseconds since the epoch.
 */
export function isSilentOnline({ heartbeatAt, status, online }: Heard, now: number): boolean {
  if (heartbeatAt === null || (status ?? 'active') !== 'active') return false
  return online === true && now - Date.parse(heartbeatAt) > DAY_MS
}

/**
 * Returns true if a workload has a VEN that is not known to answer the PCE: it is offline, not active, or silent for a
 * day, or the PCE does not say whether it is online. Such a VEN receives no new policy (P78), and it is uncertain what
 * it enforces (P104). Workloads without a VEN are never silent. Do not use this function for Kubernetes workloads,
 * which have no VEN of their own. `now` is in milliseconds since the epoch; if it is null, heartbeats are ignored.
 */
export function isSilent(workload: Workload, now: number | null): boolean {
  if (!isManaged(workload)) return false
  const { status, last_heartbeat_on: heartbeat } = (workload.agent?.status ?? {}) as Record<string, unknown>
  const statuses = [workload.ven?.status, status].filter((one) => typeof one === 'string')
  if (workload.online !== true || statuses.some((one) => one !== 'active')) return true
  const heartbeatAt = typeof heartbeat === 'string' ? heartbeat : null
  return now !== null && isSilentOnline({ heartbeatAt, status: 'active', online: true }, now)
}
