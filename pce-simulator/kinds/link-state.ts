import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import type { World } from '../world.js'

/**
 * Determines the link state that an answer shows for an interface. In `core-25.2` a VEN reports none, and an interface
 * without a VEN has the state that was written, or none (P16).
 */
export function linkState(world: World, workload: PceObject, given: Json): unknown {
  const isShown = workload.managed !== true || world.options.reality !== 'core-25.2'
  return isShown ? (given.link_state ?? null) : null
}
