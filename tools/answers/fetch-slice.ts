import type { ObjectApi, Page, ReferenceLike, RequestOptions } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { Limits } from '../../schemas/config.js'
import { MAX_PAGE } from '../../schemas/paging.js'
import type { Position } from './list-cursor.js'
import { mostRowsThatFit } from './split-format.js'

/** The page size of a PCE that is not told, and of some whatever they are told (P8). */
const PCE_PAGE = 500
/** Parameters that shape the objects and select none. */
const SHAPING = new Set(['usage', 'include', 'include_deleted'])

export interface ListQuery<T extends object> {
  api: Pick<ObjectApi<T>, 'getPage' | 'getAll'>
  policyVersion?: PolicyVersionSelector
  parent?: ReferenceLike
  /** Filters the PCE applies. */
  params: NonNullable<RequestOptions['params']>
  signal: AbortSignal
  /** The most objects that the PCE gives of this kind, however many there are; absent: no such bound. */
  most?: number
}

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

/** Every object the PCE's own filters match, in one request where its count allows, else two. */
export async function fetchEvery<T extends object>(query: ListQuery<T>): Promise<Page<T>> {
  const page = await fetchUpTo(query, MAX_PAGE)
  const total = Math.min(page.totalCount ?? page.items.length, query.most ?? Infinity)
  return page.items.length < MAX_PAGE || total <= page.items.length ? page : fetchUpTo(query, total)
}

/** At most `wanted` objects. A release that cuts at its page size whatever it is asked for is read through the client's getAll. */
async function fetchUpTo<T extends object>(query: ListQuery<T>, wanted: number): Promise<Page<T>> {
  const { api, policyVersion = 'draft', parent = null, params, signal, most = Infinity } = query
  const count = Math.min(wanted, most)
  const page = await api.getPage(policyVersion, parent, { params: { ...params, max_results: count }, signal })
  const found = page.items.length
  const mayBeCut = found < count && found < (page.totalCount ?? 0) && found > 0 && found % PCE_PAGE === 0
  if (!mayBeCut) return page
  const all = await api.getAll(policyVersion, parent, { params, signal })
  // A PCE that does not start a job for this kind answers with its shortest list.
  return { items: (all.length < found ? page.items : all).slice(0, count), totalCount: page.totalCount }
}

function isFiltered({ params }: Pick<ListQuery<object>, 'params'>): boolean {
  return Object.entries(params).some(([name, value]) => value !== undefined && !SHAPING.has(name))
}
