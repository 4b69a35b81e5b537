import { PceError, type PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { holdAddresses, unreadableOf } from '../policy/hold-addresses.js'
import { countOf } from '../text/describe-numbers.js'
import { type Steps, workInTurns } from '../text/pace-work.js'

type Entries = Pick<IpList, 'ip_ranges' | 'fqdns'>

/** Maximum number of lists named in a warning. */
const MOST_NAMED = 5

/**
 * Warns of draft IP lists that have the same addresses and domain names, however they are written, because such a list
 * is easily forgotten when the other one changes. `own` is the href of the list that changes.
 */
export async function warnOfTwinList(
  pce: PceClient,
  entries: Entries,
  signal: AbortSignal,
  own?: string,
): Promise<string[]> {
  if (!isReadable(entries)) return []
  signal.throwIfAborted()
  let lists: readonly IpList[]
  try {
    lists = (await fetchEvery({ api: pce.ipLists, params: {}, signal })).items
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return [`Whether another list has these addresses is not known: ${error.message}`]
  }
  const others = lists.filter(
    ({ href, update_type: pending }) =>
      pending !== 'delete' && (own === undefined || toDraftHref(href) !== toDraftHref(own)),
  )
  const twins = await workInTurns(findTwins(entries, others), signal)
  if (twins.length === 0) return []
  const shown = twins.slice(0, MOST_NAMED).map(({ name, href }) => `${name} (${toDraftHref(href)})`)
  const more = twins.length > shown.length ? ` and ${countOf(twins.length - shown.length, 'more list')}` : ''
  return [`${shown.join(', ')}${more} already has exactly these addresses and domain names: use it instead.`]
}

/** Returns whether every entry of a list can be compared. A list with an odd entry is left out, whoever wrote it. */
const isReadable = ({ ip_ranges: ranges, fqdns }: Entries): boolean =>
  (ranges ?? []).every((range) => typeof range?.from_ip === 'string') &&
  (fqdns ?? []).every((name) => typeof name?.fqdn === 'string') &&
  unreadableOf({ ip_ranges: ranges }).length === 0

function* findTwins(entries: Entries, lists: readonly IpList[]): Steps<IpList[]> {
  const wanted = contentOf(entries)
  const found: IpList[] = []
  for (const list of lists) {
    yield
    if (isReadable(list) && contentOf(list) === wanted) found.push(list)
  }
  return found
}

/** Returns a text for the content of a list. The text does not depend on the order or the form of the entries. */
function contentOf({ ip_ranges: ranges, fqdns }: Entries): string {
  const held = (['ipv4', 'ipv6'] as const).map((family) =>
    holdAddresses({ ip_ranges: ranges }, family).held.map(({ from, to }) => `${from}-${to}`),
  )
  const names = (fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase()).sort()
  return [...held.map((intervals) => intervals.join()), ...new Set(names)].join(' ')
}
