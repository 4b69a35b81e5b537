import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import type { World } from '../world.js'

/**
 * Returns the link state that an answer shows for a network interface. With the profile `core-25.2`, interfaces of
 * workloads with a VEN show none, and interfaces of other workloads show the state that was written, if any (P16).
 */
export function linkState(world: World, workload: PceObject, given: Json): unknown {
  const isShown = workload.managed !== true || world.options.reality !== 'core-25.2'
  return isShown ? (given.link_state ?? null) : null
}
