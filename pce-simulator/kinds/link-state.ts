import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import type { World } from '../world.js'

/**
 * Determines the link state that an answer shows for an interface. In `core-25.2`, an interface with a VEN shows none,
 * and an interface without a VEN shows the state that was written, if any (P16).
 */
export function linkState(world: World, workload: PceObject, given: Json): unknown {
  const isShown = workload.managed !== true || world.options.reality !== 'core-25.2'
  return isShown ? (given.link_state ?? null) : null
}
