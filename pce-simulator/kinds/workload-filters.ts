import type { PceObject } from '../../schemas/pce/reference.js'
import { healthOf } from '../inventory/ven-health.js'
import { invalidInput } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import {
  EXTERNAL_DATA_FILTERS,
  anyOf,
  byAddress,
  byLabels,
  exact,
  flag,
  partial,
  pointsTo,
  pointsToAny,
  readFlag,
  timeBound,
  type Filter,
  type Filters,
} from '../validate/query-filters.js'
import { collectHrefs } from './find-usage.js'

/**
 * The filters of workloads (P9). `include_deleted` is not here, because it applies to every kind that marks objects as
 * deleted.
 */
export const WORKLOAD_FILTERS: Filters = {
  name: partial('name'),
  hostname: partial('hostname'),
  description: partial('description'),
  os_id: partial('os_id'),
  ip_address: byAddress(addressesOf),
  labels: byLabels((object) => [collectHrefs(object.labels)]),
  managed: flag('managed'),
  online: flag('online'),
  enforcement_mode: exact('enforcement_mode'),
  enforcement_modes: anyOf('enforcement_mode'),
  visibility_level: exact('visibility_level'),
  mode: inside('agent', 'config', 'mode'),
  log_traffic: (value) => {
    const wanted = readFlag(value, 'log_traffic')
    return (object) => (read(object, ['agent', 'config', 'log_traffic']) === true) === wanted
  },
  policy_health: (value) => (object) => policyHealthOf(object) === value,
  security_policy_sync_state: inside('agent', 'status', 'security_policy_sync_state'),
  security_policy_update_mode: inside('agent', 'config', 'security_policy_update_mode'),
  'agent.active_pce_fqdn': inside('agent', 'active_pce_fqdn'),
  container_clusters: pointsToAny('container_cluster'),
  ven: pointsTo('ven'),
  'ven.ven_type': inside('ven', 'ven_type'),
  'last_heartbeat_on[gte]': timeBound(heartbeatOf, 'gte'),
  'last_heartbeat_on[lte]': timeBound(heartbeatOf, 'lte'),
  'risk_summary.ransomware.workload_exposure_severity': inside(
    'risk_summary',
    'ransomware',
    'workload_exposure_severity',
  ),
  'vulnerability_summary.vulnerability_exposure_score[gte]': byScore((score, limit) => score >= limit),
  'vulnerability_summary.vulnerability_exposure_score[lte]': byScore((score, limit) => score <= limit),
  ...EXTERNAL_DATA_FILTERS,
}

export function addressesOf(object: PceObject): string[] {
  const interfaces = (object.interfaces ?? []) as { address?: string | null }[]
  return [...interfaces.map(({ address }) => address), object.public_ip as string | null].filter((text) => text != null)
}

function read(object: unknown, path: readonly string[]): unknown {
  return path.reduce((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], object)
}

function inside(...path: string[]): Filter {
  return (value) => (object) => read(object, path) === value
}

function heartbeatOf(object: PceObject): string | undefined {
  return read(object, ['agent', 'status', 'last_heartbeat_on']) as string | undefined
}

/** Returns the policy health of a workload. Returns undefined for a workload without a VEN, since it has no policy. */
function policyHealthOf(object: PceObject): string | undefined {
  if (object.managed !== true) return undefined
  if (read(object, ['ven', 'status']) === 'suspended') return 'suspended'
  const health = healthOf(object)
  return health === 'healthy' ? UNCERTAIN.healthyPolicyHealth : health
}

/** Creates a filter by the score in the field `vulnerabilities_summary`. A workload without a score never matches. */
function byScore(test: (score: number, limit: number) => boolean): Filter {
  return (value) => {
    if (!/^\d{1,9}$/.test(value)) throw invalidInput(`A vulnerability_exposure_score is a whole number, not ${value}`)
    const limit = Number(value)
    return (object) => {
      const score = read(object, ['vulnerabilities_summary', 'vulnerability_exposure_score'])
      return typeof score === 'number' && test(score, limit)
    }
  }
}
