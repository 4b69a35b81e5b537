import type { PceObject, VersionedObject } from '../../schemas/pce/reference.js'
import { collectHrefs } from '../kinds/find-usage.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { renderLabels } from '../kinds/render-labels.js'
import { byLabels, exact, partial, pointsTo, readFlag } from '../validate/query-filters.js'
import type { World } from '../world.js'

/** What a load balancer was found to serve; read only (P23). */
export const discoveredVirtualServer: PlainKind = {
  segment: 'discovered_virtual_servers',
  noun: 'discovered_virtual_server',
  ids: 'uuid',
  store: (world) => world.store('discovered_virtual_servers'),
  filters: {
    name: partial('name'),
    slb: pointsTo('slb'),
    vip: (value) => (object) => matchesAddress(vipOf(object).vip, value),
    vip_port: (value) => (object) => vipOf(object).port === value,
    vip_proto: (value) => (object) => String(vipOf(object).protocol) === value,
    has_virtual_server: (value, world) => {
      const wanted = readFlag(value, 'has_virtual_server')
      return (object) => (virtualServerOf(world, object) !== undefined) === wanted
    },
    virtual_server: (value, world) => (object) => virtualServerOf(world, object)?.href === value,
    virtual_server_mode: (value, world) => (object) => virtualServerOf(world, object)?.mode === value,
    virtual_server_labels: (value, world) =>
      byLabels((object) => [collectHrefs(virtualServerOf(world, object)?.labels)])(value, world),
    'network_enforcement_node.hostname': (value, world) => (object) => nodeNameOf(world, object) === value,
    active_pce_fqdn: exact('active_pce_fqdn'),
  },

  render(world, object) {
    const { active_pce_fqdn: _own, ...rest } = object
    const server = virtualServerOf(world, object)
    return {
      ...rest,
      // What the enforcement node was called once; the vendor's schema still asks for it.
      nfc: rest.network_enforcement_node,
      virtual_server: server
        ? {
            href: server.href,
            update_type: server.update_type,
            mode: server.mode,
            labels: renderLabels(world, server.labels),
          }
        : null,
    }
  },
}

/** The virtual server that someone made of it, as its draft is. */
export function virtualServerOf(world: World, { href }: PceObject): VersionedObject | undefined {
  const entry = world.policy.entries('virtual_servers').find(({ draft }) => {
    return (draft.discovered_virtual_server as PceObject | null)?.href === href
  })
  return entry && { ...entry.draft, update_type: entry.updateType }
}

/** What the node that found it is called. */
export function nodeNameOf(world: World, object: PceObject): unknown {
  const { href } = object.network_enforcement_node as PceObject
  return world.store('network_enforcement_nodes').get(href)?.hostname
}

function vipOf(object: PceObject): { vip: string; port: string; protocol: number } {
  return object.vip_port as ReturnType<typeof vipOf>
}

/** Whole, or with a `*` at its end. */
export function matchesAddress(address: string, wanted: string): boolean {
  return wanted.endsWith('*') ? address.startsWith(wanted.slice(0, -1)) : address === wanted
}
