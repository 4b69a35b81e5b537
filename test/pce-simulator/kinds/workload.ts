import type { PceObject } from '../../../schemas/pce/reference.js'
import { methodNotAllowed, notFound } from '../refusal.js'
import { requireFreeExternalData, requireLabels } from '../validate/check-references.js'
import {
  EXTERNAL_DATA_FILTERS,
  anyOf,
  byAddress,
  byLabels,
  exact,
  flag,
  partial,
  pointsTo,
  timeBound,
} from '../validate/query-filters.js'
import { buildUnmanaged, describeInterface, withMode } from './build-unmanaged.js'
import { collectHrefs } from './find-usage.js'
import type { PlainKind } from './plain-kind.js'
import { renderLabels } from './render-labels.js'
import { LEGACY_MODES, readChange, readCreation } from './workload-shapes.js'

/** pce-api e.3. */
export const workload: PlainKind = {
  segment: 'workloads',
  noun: 'workload',
  ids: 'uuid',
  store: (world) => world.workloads,
  filters: {
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
    mode: (value) => (object) => agentConfig(object)?.mode === value,
    security_policy_sync_state: (value) => (object) => agentStatus(object)?.security_policy_sync_state === value,
    ven: pointsTo('ven'),
    'ven.ven_type': (value) => (object) => (object.ven as { ven_type?: string } | null)?.ven_type === value,
    'last_heartbeat_on[gte]': timeBound(heartbeatOf, 'gte'),
    'last_heartbeat_on[lte]': timeBound(heartbeatOf, 'lte'),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const fields = readCreation(body)
    return buildUnmanaged(world, fields)
  },

  change(world, current, body) {
    const fields = readChange(body, current)
    const { labels, agent, interfaces, ...plain } = fields
    const others = world.workloads.live().filter((other) => other.href !== current.href)
    requireFreeExternalData(others, { ...current, ...fields })
    const status = current.managed === true ? agent?.status?.status : undefined
    const mode = fields.enforcement_mode ?? (agent?.config && LEGACY_MODES[agent.config.mode])
    return {
      ...plain,
      ...(labels ? { labels: requireLabels(world, labels) } : {}),
      ...(interfaces ? { interfaces: interfaces.map(describeInterface) } : {}),
      ...(mode ? { enforcement_mode: mode, agent: withMode(current.agent, mode) } : {}),
      ...(status ? { ven: { ...(current.ven as object), status } } : {}),
    }
  },

  remove(world, current) {
    if (current.deleted === true) throw notFound()
    if (current.managed === true) throw methodNotAllowed()
    return { deleted: true, deleted_at: world.now(), deleted_by: { href: world.user.href } }
  },

  render(world, object) {
    return { ...object, labels: renderLabels(world, object.labels), caps: ['write'] }
  },
}

function addressesOf(object: PceObject): string[] {
  const interfaces = (object.interfaces ?? []) as { address?: string | null }[]
  return [...interfaces.map(({ address }) => address), object.public_ip as string | null].filter((text) => text != null)
}

function agentConfig(object: PceObject): Record<string, unknown> | undefined {
  return (object.agent as { config?: Record<string, unknown> } | null | undefined)?.config
}

function agentStatus(object: PceObject): Record<string, unknown> | undefined {
  return (object.agent as { status?: Record<string, unknown> } | null | undefined)?.status
}

function heartbeatOf(object: PceObject): string | undefined {
  return agentStatus(object)?.last_heartbeat_on as string | undefined
}
