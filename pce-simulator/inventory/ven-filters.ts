import type { PceObject } from '../../schemas/pce/reference.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { addressesOf } from '../kinds/workload-filters.js'
import { invalidInput } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import {
  byAddress,
  byLabels,
  partial,
  pointsToAny,
  readFlag,
  readTime,
  timeBound,
  type Filter,
  type Filters,
} from '../validate/query-filters.js'
import type { World } from '../world.js'
import { compareReleases } from './compare-releases.js'
import { conditionsOf, healthOf } from './ven-health.js'
import { agentOf, heartbeatOf, inRecovery, ownVen, pendingUpgrade, venState, versionOf } from './ven.js'

/**
 * The filters of VENs (P9). They run on the paired workloads, so that fields of a VEN are computed only if a filter
 * needs them.
 */
export const VEN_FILTERS: Filters = {
  name: containing((workload) => ownVen(workload)?.name),
  hostname: partial('hostname'),
  description: containing((workload, world) => venState(world, workload)?.description),
  ip_address: byAddress(addressesOf),
  os: partial('os_id'),
  status: equal((workload) => ownVen(workload)?.status ?? 'active'),
  health: (value) => (workload) => {
    const health = healthOf(workload)
    return health === value || (value === 'unhealthy' && health !== 'healthy')
  },
  condition: (value) => (workload) => {
    return conditionsOf(workload).some(({ latest_event }) => latest_event.notification_type === value)
  },
  ven_type: equal((workload) => ownVen(workload)?.ven_type ?? 'server'),
  activation_type: equal(() => 'pairing_key'),
  authentication_recovery: whether('authentication_recovery', inRecovery),
  upgrade_pending: whether('upgrade_pending', (world, workload) => pendingUpgrade(world, workload) !== undefined),
  labels: byLabels((workload) => [collectHrefs(workload.labels)]),
  container_clusters: pointsToAny('container_cluster'),
  active_pce_fqdn: equal((workload) => agentOf(workload).active_pce_fqdn),
  'version[gte]': (value) => (workload) => compareReleases(versionOf(workload), value) >= 0,
  'version[lte]': (value) => (workload) => compareReleases(versionOf(workload), value) <= 0,
  'last_heartbeat_at[gte]': timeBound(heartbeatOf, 'gte'),
  'last_heartbeat_at[lte]': timeBound(heartbeatOf, 'lte'),
  'last_goodbye_at[gte]': timeBound(() => null, 'gte'),
  'last_goodbye_at[lte]': timeBound(() => null, 'lte'),
  disconnected_before: (value) => {
    const limit = readTime(value)
    if (limit === null) throw invalidInput(`${value} is not a timestamp with a time zone`)
    return (workload) => {
      const heard = Date.parse(heartbeatOf(workload) ?? '')
      return heard < limit && (workload.online === false || !UNCERTAIN.disconnectedMeansOffline)
    }
  },
}

/** Creates a filter that matches a part of a computed string, as `partial` matches a part of a stored field. */
function containing(textOf: (workload: PceObject, world: World) => string | null | undefined): Filter {
  return (value, world) => {
    const test = partial('text')(value, world)
    return (workload) => test({ href: workload.href, text: textOf(workload, world) })
  }
}

function equal(textOf: (workload: PceObject) => string | null | undefined): Filter {
  return (value) => (workload) => (textOf(workload) ?? '') === value
}

function whether(name: string, test: (world: World, workload: PceObject) => boolean): Filter {
  return (value, world) => {
    const wanted = readFlag(value, name)
    return (workload) => test(world, workload) === wanted
  }
}
