import type { PceObject } from '../../schemas/pce/reference.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { HISTORY_STARTS } from '../estate/draw-conversations.js'
import type { Conversation, Endpoint } from '../model.js'
import type { World } from '../world.js'
import { kubernetesWorkload } from './kubernetes-workload.js'

/** The calls between Kubernetes workloads: name of the source, name of the destination, and port. */
const CALLS = [
  ['storefront', 'cart', 8080],
  ['cart', 'session-cache', 6379],
  ['storefront', 'order-api', 8443],
  ['order-api', 'order-worker', 5672],
  ['order-worker', 'checkout', 8443],
] as const

/**
 * The daily number of connections, as counted by the source and by the destination. The two counts differ slightly, as
 * they do in rows recorded at a PCE.
 */
const COUNTS = { outbound: 101, inbound: 100 } as const

/**
 * Makes the conversations of Kubernetes workloads. The source and the destination both report each conversation, so
 * that it makes two rows. The conversations are the same for every seed; an estate without Kubernetes workloads has
 * none.
 */
export function talkOfPods(world: World): Conversation[] {
  const ends = new Map<unknown, Endpoint>(
    podsOf(world).map(({ href, name, private_ip_addresses }) => [
      name,
      { workload: href, ip: (private_ip_addresses as string[])[0]! },
    ]),
  )
  return CALLS.flatMap(([from, to, port], index) => {
    const [src, dst] = [ends.get(from), ends.get(to)]
    if (src === undefined || dst === undefined) return []
    return (['inbound', 'outbound'] as const).map((flowDirection): Conversation => ({
      src,
      dst,
      service: { port, proto: 6 },
      flowDirection,
      firstDay: HISTORY_STARTS,
      lastDay: null,
      everyDays: 1,
      secondOfDay: 3600 * (index + 1),
      connectionsPerDay: COUNTS[flowDirection],
      bytesIn: 40_000,
      bytesOut: 90_000,
      state: 'closed',
    }))
  })
}

/**
 * Lists the Kubernetes workloads in the form in which they appear as sources and destinations of rows: managed, with
 * labels and a mode, without a host name (P106).
 */
export function podsAsEnds(world: World): Workload[] {
  return podsOf(world).map((object) => {
    const { href, name, enforcement_mode, labels } = kubernetesWorkload.render(
      world,
      object,
      new URLSearchParams(),
    ) as Workload
    return { href, name, hostname: null, managed: true, enforcement_mode, labels }
  })
}

const podsOf = (world: World): PceObject[] => world.store('kubernetes_workloads').all()
