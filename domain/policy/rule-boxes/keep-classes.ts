import type { IpList } from '../../../schemas/pce/ip-list.js'
import type { Steps } from '../../text/pace-work.js'

/**
 * The cached result for a combination of IP lists. It is stored under the first of these lists, so that both are freed
 * together.
 */
type Kept<T> = WeakMap<IpList, { lists: readonly IpList[]; classes: T }>

/**
 * Maximum number of cached results for combinations of IP lists: two, because each change is compared with two versions
 * of the lists.
 */
const MOST_KEPT = 2

/**
 * Adds a cache to a calculation on IP lists. It stores the results for single lists, because most rules name one list,
 * and the latest results for combinations, because the rules of a change are compared several times in a row. An IP
 * list must not be changed after the calculation has read it.
 */
export function keepClasses<T>(divide: (lists: readonly IpList[]) => Steps<T>): (lists: readonly IpList[]) => Steps<T> {
  const alone = new WeakMap<IpList, T>()
  let latest: Kept<T>[] = []
  const find = (first: IpList, lists: readonly IpList[]): T | undefined => {
    if (lists.length === 1) return alone.get(first)
    const isSame = (known: readonly IpList[]) =>
      known.length === lists.length && known.every((list, at) => list === lists[at])
    for (const kept of latest) {
      const known = kept.get(first)
      if (known !== undefined && isSame(known.lists)) return known.classes
    }
    return undefined
  }
  return function* (lists) {
    const [first] = lists
    const known = first && find(first, lists)
    if (known !== undefined) return known
    const classes = yield* divide(lists)
    if (first !== undefined && lists.length === 1) alone.set(first, classes)
    else if (first !== undefined) latest = [new WeakMap([[first, { lists, classes }]]), ...latest].slice(0, MOST_KEPT)
    return classes
  }
}
