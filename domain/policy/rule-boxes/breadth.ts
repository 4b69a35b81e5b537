import type { Actor } from '../../../schemas/pce/rule-set.js'
import type { Box } from '../boxes.js'
import type { AnyRule } from '../rule-in-force.js'
import { NONE } from './bits.js'
import { KINDS } from './end-boxes.js'
import { isSaid } from '../default-fields.js'
import type { WrittenEnd } from './readings.js'

/** Whether a rule is so broad that this counts as a risk to review. */
export interface Breadth {
  /** True if, at one end, the rule covers so many addresses that it hardly restricts them (D92). */
  anyAddress: boolean
  /** True if, at each end, the rule covers any address or all workloads, and it covers every service. */
  anyToAny: boolean
}

/**
 * Determines how broad a rule is. `readBoxes` is only called for rules that name addresses at one end, or all workloads
 * at both ends.
 */
export function measureBreadth(
  { providers, consumers }: AnyRule,
  readBoxes: () => readonly Box[],
  isMost: (mask: bigint) => boolean,
): Breadth {
  const named = (side: readonly Actor[]) => side.some((actor) => isSaid(actor.ip_list))
  const isOpen = (side: readonly Actor[]) => named(side) || side.some((actor) => actor.actors === 'ams')
  if (!named(providers) && !named(consumers) && !(isOpen(providers) && isOpen(consumers)))
    return { anyAddress: false, anyToAny: false }
  const boxes = readBoxes()
  const isAddress = (box: Box, end: WrittenEnd) =>
    [...box].every(([name, mask]) => !name.startsWith(end) || (name === `${end}.ip` && isMost(mask)))
  const isWorkload = (box: Box, end: WrittenEnd) =>
    [...box].every(([name, mask]) => !name.startsWith(end) || (name === `${end}.kind` && mask === KINDS.workload))
  const isAny = (box: Box) =>
    [...box].every(
      ([name, mask]) => /^(?:src|dst)\./u.test(name) || name === 'network' || (name === 'special' && mask === NONE),
    )
  const anyEnd = (box: Box, end: WrittenEnd) => isAddress(box, end) || isWorkload(box, end)
  return {
    anyAddress: boxes.some((box) => isAddress(box, 'src') || isAddress(box, 'dst')),
    anyToAny: boxes.some((box) => isAny(box) && anyEnd(box, 'src') && anyEnd(box, 'dst')),
  }
}
