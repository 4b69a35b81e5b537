import { corporateNetwork } from '../estate/shape-workload.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import { methodNotAllowed, notFound } from '../refusal.js'
import { requireLabels } from '../validate/check-references.js'
import { buildUnmanaged, changeAgent, describeInterface, requireFreePair } from './build-unmanaged.js'
import { linkState } from './link-state.js'
import type { PlainKind } from './plain-kind.js'
import { renderLabels } from './render-labels.js'
import { endBindingsOf } from './service-binding.js'
import { WORKLOAD_FILTERS } from './workload-filters.js'
import type { World } from '../world.js'
import { LEGACY_MODES, readChange, readCreation } from './workload-shapes.js'

/** The object kind for workloads, both managed and unmanaged (P16). */
export const workload: PlainKind = {
  segment: 'workloads',
  noun: 'workload',
  ids: 'uuid',
  store: (world) => world.workloads,
  filters: WORKLOAD_FILTERS,

  build(world, body) {
    const fields = readCreation(body)
    return buildUnmanaged(world, fields)
  },

  change(world, current, body) {
    const fields = readChange(body, current)
    const { labels, agent, interfaces, ...plain } = fields
    requireFreePair(world, fields, current)
    const status = current.managed === true ? agent?.status?.status : undefined
    const mode = fields.enforcement_mode ?? (agent?.config && LEGACY_MODES[agent.config.mode])
    const changedAgent = changeAgent(current.agent, { mode, status, log_traffic: agent?.config?.log_traffic })
    return {
      ...plain,
      ...(labels ? { labels: requireLabels(world, labels) } : {}),
      ...(interfaces ? { interfaces: interfaces.map(describeInterface) } : {}),
      ...(mode ? { enforcement_mode: mode } : {}),
      ...(changedAgent ? { agent: changedAgent } : {}),
      ...(status ? { ven: { ...(current.ven as object), status } } : {}),
    }
  },

  remove(world, current) {
    if (current.deleted === true) throw notFound()
    if (current.managed === true) throw methodNotAllowed()
    endBindingsOf(world, current)
    return { deleted: true, deleted_at: world.now(), deleted_by: { href: world.user.href } }
  },

  render(world, object) {
    const rendered = { ...object, labels: renderLabels(world, object.labels), caps: ['write'] }
    return world.options.reality === 'core-25.2' ? asRecorded(world, rendered) : rendered
  },
}

/**
 * Adds the fields that every workload has in recorded answers (P43), with default values if the workload lacks them.
 */
function asRecorded(world: World, workload: PceObject): Json {
  const { ven, agent, interfaces, os_id: osId, os_detail: osDetail } = workload
  const { status, ...rest } = (agent ?? {}) as { status?: Json }
  const network = corporateNetwork(world.orgId)
  return {
    blocked_connection_action: null,
    containers_inherit_host_policy: null,
    ...workload,
    os_id: osId ?? '',
    os_detail: osDetail ?? '',
    agent: { ...rest, ...(status && { status: { instance_id: null, ...status } }) },
    ven: ven === undefined ? null : { version: status?.agent_version ?? null, ...(ven as Json) },
    interfaces: ((interfaces ?? []) as Json[]).map((given) => ({
      public_ip: null,
      loopback: false,
      network,
      network_detection_mode: 'single_private_brn',
      ...given,
      link_state: linkState(world, workload, given),
    })),
  }
}
