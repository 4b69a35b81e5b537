import type {
  ObjectApi,
  Page,
  ReferenceLike,
  RequestOptions,
  ScanOptions,
  ScanOutcome,
} from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_PAGE } from '../../schemas/paging.js'

/** The default page size of a PCE, and for some releases the only one (P8). */
const PCE_PAGE = 500

/** Objects to read one after the other: which ones, and the filters that the PCE applies to them. */
export interface ScanQuery<T extends object> {
  api: Pick<ObjectApi<T>, 'scan'>
  policyVersion?: PolicyVersionSelector
  parent?: ReferenceLike | null
  /** Filters the PCE applies. */
  params: NonNullable<RequestOptions['params']>
  signal: AbortSignal
}

/** Hands over what the query finds while it arrives, however much that is; see `ScanOptions`. */
export function scanEvery<T extends object>(
  { api, policyVersion = 'draft', parent = null, params, signal }: ScanQuery<T>,
  take: Pick<ScanOptions<T>, 'onBegin' | 'onItems' | 'most' | 'isHeld'>,
): Promise<ScanOutcome> {
  return api.scan(policyVersion, parent, { params, signal, ...take })
}

/** A PCE has sent a part of a list: whatever is judged by it as if it were all would be wrong. */
export class IncompleteListError extends ToolError {
  constructor({ items, matchCount }: ScanOutcome) {
    const text = `The PCE sent ${items} of ${matchCount ?? 'more'} objects of a list that is needed whole, so no answer can rest on it.`
    super(
      'pce_error',
      text,
      { items_seen: items },
      { hint: 'Ask about less, so that the list is shorter, or try again later.' },
    )
  }
}

/**
 * The same for what can only be answered from all of it.
 *
 * @throws {IncompleteListError} where the PCE has sent a part.
 */
export async function scanWhole<T extends object>(
  query: ScanQuery<T>,
  take: Pick<ScanOptions<T>, 'onBegin' | 'onItems' | 'isHeld'>,
): Promise<void> {
  const read = await scanEvery(query, take)
  if (!read.isWhole) throw new IncompleteListError(read)
}

/**
 * What is needed of each object that the query finds, where the objects themselves are too much to hold: their names, their ports.
 * Undefined where it is nothing.
 *
 * @throws {IncompleteListError} as scanWhole.
 */
export async function pickEvery<T extends object, R>(
  query: ScanQuery<T>,
  pick: (item: T) => R | undefined,
): Promise<R[]> {
  const picked: R[] = []
  await scanWhole(query, {
    onBegin: () => void (picked.length = 0),
    onItems(items) {
      for (const item of items) {
        const part = pick(item)
        if (part !== undefined) picked.push(part)
      }
    },
    isHeld: true,
  })
  return picked
}

/** A list to read and hold. */
export interface ListQuery<T extends object> extends Omit<ScanQuery<T>, 'api'> {
  api: Pick<ObjectApi<T>, 'getPage' | 'getAll'>
  /** The most objects that the PCE gives of this kind, however many there are; absent: no such bound. */
  most?: number
}

/** Every object the PCE's own filters match, in one request where its count allows, otherwise two. */
export async function fetchEvery<T extends object>(query: ListQuery<T>): Promise<Page<T>> {
  const page = await fetchUpTo(query, MAX_PAGE)
  const total = Math.min(page.totalCount ?? page.items.length, query.most ?? Infinity)
  return page.items.length < MAX_PAGE || total <= page.items.length ? page : fetchUpTo(query, total)
}

/** At most `wanted` objects. A release that always cuts at its page size is read through the client's getAll. */
export async function fetchUpTo<T extends object>(query: ListQuery<T>, wanted: number): Promise<Page<T>> {
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
