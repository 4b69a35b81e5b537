import { PceError, type PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { ToolContext } from '../call.js'
import { fetchUpTo } from '../inventory/fetch-every.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { holdAddresses, unreadableOf } from '../policy/hold-addresses.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'
import { type Steps, workInTurns } from '../text/pace-work.js'

type Entries = Pick<IpList, 'ip_ranges' | 'fqdns'>

interface Source extends Pick<ToolContext, 'isBindingOnly'> {
  pce: PceClient
  signal: AbortSignal
}

/** Maximum number of IP lists read with one request, which is the most that a PCE sends in one answer (P8). */
const MOST_READ = 500
/** Maximum number of lists named in a warning. */
const MOST_NAMED = 5

/**
 * Warns of other draft IP lists with the same addresses and domain names, in whatever notation, because such a list is
 * easily forgotten when the other one changes. Returns no warnings if the caller needs only the digest of what the call
 * would write.
 *
 * @param own the href of the list that changes.
 */
export async function warnOfTwinList(
  { pce, signal, isBindingOnly }: Source,
  entries: Entries,
  own?: string,
): Promise<string[]> {
  if (isBindingOnly === true || !hasTexts(entries) || unreadableOf(entries).length > 0) return []
  signal.throwIfAborted()
  const lists = new Map<string, IpList>()
  const unread: string[] = []
  const read = async (params: { fqdn?: string; ip_address?: string }) => {
    const { items, totalCount } = await fetchUpTo<IpList>({ api: pce.ipLists, params, signal }, MOST_READ)
    for (const list of items) lists.set(list.href, list)
    return totalCount ?? (items.length < MOST_READ ? items.length : Infinity)
  }
  try {
    const total = await read({})
    if (total > lists.size) {
      // If not all lists were read, the PCE is asked for the lists that contain the first of `entries`. This finds an
      // equal list among the unread ones, provided that it has this entry in the same spelling.
      const [range, name] = [entries.ip_ranges?.[0], entries.fqdns?.[0]]
      await read(range === undefined ? { fqdn: name?.fqdn ?? '' } : { ip_address: addressOf(range.from_ip) })
      const all = Number.isFinite(total) ? ` of ${total}` : ''
      unread.push(`Only ${lists.size}${all} IP lists were compared: whether another has these addresses is not known.`)
    }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    unread.push(`Whether another list has these addresses is not known: ${error.message}`)
  }
  const others = [...lists.values()].filter(
    ({ href, update_type: pending }) =>
      pending !== 'delete' && (own === undefined || toDraftHref(href) !== toDraftHref(own)),
  )
  const twins = await workInTurns(findTwins(entries, others), signal)
  if (twins.length === 0) return unread
  const shown = twins.slice(0, MOST_NAMED).map(({ name, href }) => `${quote(name)} (${toDraftHref(href)})`)
  const more = twins.length > shown.length ? ` and ${countOf(twins.length - shown.length, 'more list')}` : ''
  return [
    `${shown.join(', ')}${more} already ${twins.length === 1 ? 'has' : 'have'} exactly these addresses and domain names: use ${twins.length === 1 ? 'it' : 'one of them'} instead.`,
  ]
}

/** Returns the address in a network such as `10.0.0.0/8`, because the PCE's filter compares addresses as strings. */
const addressOf = (range: string) => range.split('/', 1)[0] ?? range

/**
 * Returns true if every range has a first address and every domain name is a string. Other lists cannot be compared.
 */
const hasTexts = ({ ip_ranges: ranges, fqdns }: Entries): boolean =>
  (ranges ?? []).every((range) => typeof range?.from_ip === 'string') &&
  (fqdns ?? []).every((name) => typeof name?.fqdn === 'string')

function* findTwins(entries: Entries, lists: readonly IpList[]): Steps<IpList[]> {
  const [names, addresses] = [namesOf(entries), addressesOf(entries)]
  const found: IpList[] = []
  for (const list of lists) {
    yield
    // Domain names are compared first, because computing the addresses of a list takes longer.
    if (!hasTexts(list) || namesOf(list) !== names) continue
    if (unreadableOf(list).length === 0 && addressesOf(list) === addresses) found.push(list)
  }
  return found
}

/** Returns a string that identifies the addresses of a list, regardless of the order and notation of its ranges. */
function addressesOf({ ip_ranges: ranges }: Entries): string {
  const held = (['ipv4', 'ipv6'] as const).map((family) =>
    holdAddresses({ ip_ranges: ranges }, family).held.map(({ from, to }) => `${from}-${to}`),
  )
  return held.map((intervals) => intervals.join()).join(' ')
}

/** Returns a string that identifies the domain names of a list, regardless of their order and case. */
const namesOf = ({ fqdns }: Entries): string =>
  [...new Set((fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase()))].sort().join(' ')
