import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Actor } from '../../schemas/pce/rule-set.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { quote } from '../text/escape-text.js'
import type { ResolvedService } from './resolve-services.js'
import { type Entry, entriesOf, measureLists, measurePorts } from './warn-of-wide-list.js'

/** The parts of a rule that are about to be written. An end that does not change is absent. */
interface WrittenRule {
  providers?: readonly Actor[] | undefined
  consumers?: readonly Actor[] | undefined
  /** The services that the rule then has; absent if they are not known here. */
  services?: readonly ResolvedService[] | undefined
  deny: boolean
}

/** Maximum number of IP lists that are named in a warning. */
const MOST_NAMED = 5

/**
 * Warns of an end of a rule that is any address in effect through its IP lists together, or that has thousands of
 * public ones: by the measure and in the words of writes of IP lists. Each list that the call has not looked up yet
 * takes a request.
 */
export async function warnOfWideEnds(lookups: PolicyLookups, rule: WrittenRule): Promise<string[]> {
  const warnings: string[] = []
  for (const side of ['providers', 'consumers'] as const) {
    const hrefs = (rule[side] ?? []).flatMap(({ ip_list: list }) => list?.href ?? [])
    const lists: IpList[] = []
    for (const href of new Set(hrefs)) lists.push((await lookups.byHref('ip_lists', href)) as IpList)
    const width = measureLists(lists)
    if (width === undefined) continue
    const names = lists.slice(0, MOST_NAMED).map(({ name }) => quote(name))
    const named = `${names.join(', ')}${lists.length > MOST_NAMED ? ` and ${lists.length - MOST_NAMED} more` : ''}`
    const whom = width.size === 'any' ? 'nearly everybody' : 'whoever has one of them'
    warnings.push(
      `The ${side} are ${width.size === 'any' ? 'any address in effect' : 'thousands of addresses beyond private ranges'}: ${named} has ${width.shares}. The rule ${rule.deny ? 'denies' : 'allows'} ${whom}${describePorts(rule.services)}.`,
    )
  }
  return warnings
}

function describePorts(services: readonly ResolvedService[] = []): string {
  const width = measurePorts(
    services.flatMap((one): Entry[] => ('service' in one ? entriesOf(one.service) : [{ ...one.ports }])),
  )
  return width === undefined ? '' : `, on every port in effect (${width.shares})`
}
