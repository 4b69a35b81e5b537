import { methodNotAllowed, notFound } from '../refusal.js'
import { requireLabels } from '../validate/check-references.js'
import { buildUnmanaged, changeAgent, describeInterface, requireFreePair } from './build-unmanaged.js'
import type { PlainKind } from './plain-kind.js'
import { renderLabels } from './render-labels.js'
import { endBindingsOf } from './service-binding.js'
import { WORKLOAD_FILTERS } from './workload-filters.js'
import { LEGACY_MODES, readChange, readCreation } from './workload-shapes.js'

/** Workloads, managed or not (P16). */
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
    return { ...object, labels: renderLabels(world, object.labels), caps: ['write'] }
  },
}
