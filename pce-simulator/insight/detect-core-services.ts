import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import { orgPath, type World } from '../world.js'
import { coreServiceTypes, type CoreServiceType } from './core-service-type.js'
import type { PortRange } from './data/core-services.js'

/** A host that serves fewer hosts than this is not a core service. */
const FEWEST_CLIENTS = 5
const DAY_MS = 86_400_000

/** What reached a workload: how many different ends on each port, and the last day of it. */
interface Served {
  clients: Map<number, Set<string>>
  lastSeen: number
}

/** Finds the hosts that behave like core services: many different ends reach them on a type's ports. */
export function seedDetectedCoreServices(world: World): void {
  const types = coreServiceTypes(world)
  const served = collectServed(world, types)
  for (const type of types) {
    for (const [workload, { clients, lastSeen }] of served) {
      const reach = (range: PortRange) => countClients(clients, range)
      const required = type.required_ports.map(reach)
      const optional = type.optional_ports.filter((range) => reach(range) > 0).length
      const fewest = Math.min(...required)
      if (fewest < FEWEST_CLIENTS || optional < type.num_optional_ports_required) continue
      const found = world.workloads.get(workload)
      if (found) world.store('detected_core_services').set(describe(world, type, found, fewest, lastSeen))
    }
  }
}

function collectServed(world: World, types: readonly CoreServiceType[]): Map<string, Served> {
  const ranges = types.flatMap(({ required_ports, optional_ports }) => [...required_ports, ...optional_ports])
  const today = Math.floor(world.clock() / DAY_MS)
  const served = new Map<string, Served>()
  for (const { src, dst, service, lastDay, firstDay } of world.conversations) {
    const { port } = service
    if (!('workload' in dst) || port == null || firstDay > today || !ranges.some((range) => covers(range, port)))
      continue
    const entry = served.get(dst.workload) ?? { clients: new Map<number, Set<string>>(), lastSeen: 0 }
    const clients = entry.clients.get(port) ?? new Set<string>()
    clients.add(src.ip)
    entry.clients.set(port, clients)
    entry.lastSeen = Math.max(entry.lastSeen, Math.min(lastDay ?? today, today))
    served.set(dst.workload, entry)
  }
  return served
}

function covers({ port, to_port = port }: PortRange, wanted: number): boolean {
  return port <= wanted && wanted <= to_port
}

function countClients(clients: Served['clients'], range: PortRange): number {
  const ends = [...clients].filter(([port]) => covers(range, port)).map(([, found]) => found)
  return ends.length === 0 ? 0 : Math.max(...ends.map(({ size }) => size))
}

function describe(
  world: World,
  type: CoreServiceType,
  workload: PceObject,
  clients: number,
  lastSeen: number,
): PceObject {
  const [first] = (workload.interfaces ?? []) as { address?: string }[]
  const { created_at, updated_at } = birthOf(world)
  return {
    href: orgPath(world, `/detected_core_services/${world.ids.uuid('detected_core_services')}`),
    ip_address: first?.address ?? '',
    workload: { href: workload.href },
    core_service_type: { href: type.href },
    // The more hosts depend on it, the surer; what may be called a core service at all is at least 50.
    confidence: Math.min(100, 50 + clients),
    method_name: 'port_based',
    action: 'recommended',
    feedback: '',
    labels_applied: false,
    created_at,
    updated_at,
    last_detected_at: new Date(lastSeen * DAY_MS).toISOString(),
  }
}
