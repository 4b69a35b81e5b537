import type { Actor } from '../../../schemas/pce/rule-set.js'
import type { Box } from '../boxes.js'
import type { AnyRule } from '../rule-in-force.js'
import { NONE } from './bits.js'
import { KINDS } from './end-boxes.js'
import { isSaid } from '../default-fields.js'
import type { WrittenEnd } from './readings.js'

/** The two ways in which a rule may be so broad that a person should review it. */
export interface Breadth {
  /** True if one side of the rule covers so many addresses that it hardly restricts anything (D92). */
  anyAddress: boolean
  /** True if the rule covers every service, and on both sides either any address or all workloads. */
  anyToAny: boolean
}

/**
 * Determines how broad a rule is. `readBoxes` is called only for rules with addresses on one side or with all workloads
 * on both sides.
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
