import { fetchEvery, fetchUpTo, type ListQuery } from '../../domain/inventory/fetch-every.js'
import type { Limits } from '../../schemas/config.js'
import { MAX_PAGE } from '../../schemas/paging.js'
import type { Position } from './list-cursor.js'
import { mostRowsThatFit } from './split-format.js'

/** Parameters that shape the objects and select none. */
const SHAPING = new Set(['usage', 'include', 'include_deleted'])

export interface Slice<T> {
  /** The objects of this page, before the byte budget. */
  items: T[]
  /** Index of the first of them among all matches. */
  start: number
  /** Objects that match all filters, ours included. */
  totalCount: number
  /** X-Total-Count of the query as sent. */
  pceTotal: number
  /** Matches follow after `items`. */
  more: boolean
  /** Objects that the PCE gave to find them in; absent where the list was at hand. */
  seen?: number
}

/**
 * One page of a list. The PCE has no offset, so the page is cut from a fetch that covers it. A filter the PCE cannot apply
 * (`ownFilter`) is applied to every object, so that neither pages nor counts depend on where it happened to match.
 */
export async function fetchSlice<T extends { href: string }>(
  query: ListQuery<T>,
  position: Position,
  maxResults: number | undefined,
  limits: Limits,
  ownFilter?: (item: T) => boolean,
): Promise<Slice<T>> {
  const limit = Math.min(maxResults ?? MAX_PAGE, mostRowsThatFit(limits))
  // One more than the page needs tells whether something follows. With filters X-Total-Count may still be that of the whole
  // collection (P6) or missing, so where it would have to serve as the count of matches, they are counted.
  const needed = position.offset + limit + 1
  let page = ownFilter === undefined ? await fetchUpTo(query, needed) : await fetchEvery(query)
  let complete = ownFilter !== undefined || page.items.length < needed
  if (!complete && (isFiltered(query) || page.totalCount === null)) {
    page = await fetchEvery(query)
    complete = true
  }
  const matches = ownFilter === undefined ? page.items : page.items.filter(ownFilter)

  const anchor = position.after === null ? -1 : matches.findIndex(({ href }) => href === position.after)
  // An anchor that is gone has moved whatever followed it one place up.
  const resumeAt = position.after === null ? position.offset : Math.max(0, position.offset - 1)
  const start = anchor === -1 ? Math.min(resumeAt, matches.length) : anchor + 1
  const items = matches.slice(start, start + limit)
  const pceTotal = page.totalCount ?? page.items.length
  return {
    items,
    start,
    pceTotal,
    totalCount: complete ? matches.length : Math.max(pceTotal, matches.length),
    more: !complete || matches.length > start + items.length,
    seen: page.items.length,
  }
}

function isFiltered({ params }: Pick<ListQuery<object>, 'params'>): boolean {
  return Object.entries(params).some(([name, value]) => value !== undefined && !SHAPING.has(name))
}
