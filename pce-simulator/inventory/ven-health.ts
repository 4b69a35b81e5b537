import type { PceObject } from '../../schemas/pce/reference.js'

export interface Condition {
  first_reported_timestamp: string | null
  latest_event: {
    notification_type: string
    severity: 'err' | 'warning'
    href: string
    info: Record<string, unknown>
    timestamp: string | null
  }
}

interface AgentStatus {
  last_heartbeat_on?: string | null
  agent_health?: { type: string; severity: string; audit_event?: string }[] | null
}

/** Returns the health conditions of a VEN: those that its agent reported, and one for a missing heartbeat (P24). */
export function conditionsOf(workload: PceObject): Condition[] {
  const status = (workload.agent as { status?: AgentStatus } | null | undefined)?.status
  const reported = status?.agent_health ?? []
  if (reported.length === 0 && workload.online !== false) return []
  const timestamp = status?.last_heartbeat_on ?? null
  const condition = (notification_type: string, severity: 'err' | 'warning', event?: string): Condition => {
    const href = event ?? workload.href.replace('/workloads/', '/events/')
    const latest_event = { notification_type, severity, href, info: {}, timestamp }
    return { first_reported_timestamp: timestamp, latest_event }
  }
  return [
    ...reported.map(({ type, severity, audit_event }) =>
      condition(type, severity.startsWith('err') ? 'err' : 'warning', audit_event),
    ),
    ...(workload.online === false ? [condition('agent.missed_heartbeats', 'warning')] : []),
  ]
}

/** Returns the health of a VEN: `healthy`, or the severity of its worst condition. */
export function healthOf(workload: PceObject): 'healthy' | 'warning' | 'error' {
  const severities = conditionsOf(workload).map(({ latest_event }) => latest_event.severity)
  return severities.includes('err') ? 'error' : severities.length > 0 ? 'warning' : 'healthy'
}
