import {
  PceError,
  type ObjectApi,
  type Page,
  type ReferenceLike,
  type RequestOptions,
  type ScanOptions,
  type ScanOutcome,
} from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_PAGE } from '../../schemas/paging.js'

/** The default page size of a PCE. Some releases cannot return larger pages (P8). */
const PCE_PAGE = 500

/** The query for a list whose objects are passed on one by one while they arrive. */
export interface ScanQuery<T extends object> {
  api: Pick<ObjectApi<T>, 'scan'>
  policyVersion?: PolicyVersionSelector
  parent?: ReferenceLike | null
  /** The query parameters that the PCE uses as filters. */
  params: NonNullable<RequestOptions['params']>
  signal: AbortSignal
  /** Maximum size of each answer; see `RequestOptions.maxBytes`. */
  maxBytes?: number
}

/** Reads a list of any length and passes on its objects as they arrive. See `ScanOptions` for the callbacks. */
export function scanEvery<T extends object>(
  { api, policyVersion = 'draft', parent = null, params, signal, maxBytes }: ScanQuery<T>,
  take: Pick<ScanOptions<T>, 'onBegin' | 'onItems' | 'most' | 'isHeld'>,
): Promise<ScanOutcome> {
  return api.scan(policyVersion, parent, { params, signal, maxBytes, ...take })
}

/**
 * Thrown when the PCE sent only part of a list that is needed in full. Any conclusion from an incomplete list would be
 * wrong.
 */
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

/** Returns true if the error means that the PCE did not send the requested data, or sent only a part of it. */
export const isUnread = (error: unknown): error is PceError | IncompleteListError =>
  error instanceof PceError || error instanceof IncompleteListError

/**
 * Thrown if the PCE listed objects of another type than the requested one. No conclusion can be drawn from such a list.
 */
export class OddListError extends ToolError {
  constructor(wanted: string) {
    super('invalid_response', `The PCE listed something other than ${wanted}.`, {})
  }
}

/**
 * Works like `scanEvery`, but fails if the list is incomplete. It is for questions that only the complete list can
 * answer.
 *
 * @throws {IncompleteListError} if the PCE sent only part of the list.
 */
export async function scanWhole<T extends object>(
  query: ScanQuery<T>,
  take: Pick<ScanOptions<T>, 'onBegin' | 'onItems' | 'isHeld'>,
): Promise<void> {
  const read = await scanEvery(query, take)
  if (!read.isWhole) throw new IncompleteListError(read)
}

/**
 * Reads a list and keeps only what `pick` returns for each object, such as its name or its ports, because the objects
 * themselves would take too much memory. Objects for which `pick` returns undefined are skipped.
 * @throws {IncompleteListError} if the PCE sent only part of the list.
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

/** The query for a list whose objects are all held in memory. */
export interface ListQuery<T extends object> extends Omit<ScanQuery<T>, 'api'> {
  api: Pick<ObjectApi<T>, 'getPage' | 'getAll'>
  /**
   * The most objects of this type that the PCE ever returns, however many exist; undefined if there is no such limit.
   */
  most?: number
}

/**
 * Reads every object that matches the filters. This takes one request if the objects fit into one page, otherwise two.
 */
export async function fetchEvery<T extends object>(query: ListQuery<T>): Promise<Page<T>> {
  const page = await fetchUpTo(query, MAX_PAGE)
  const total = Math.min(page.totalCount ?? page.items.length, query.most ?? Infinity)
  return page.items.length < MAX_PAGE || total <= page.items.length ? page : fetchUpTo(query, total)
}

/**
 * Reads at most `wanted` objects. If the PCE seems to have cut the answer at its page size, the list is read again with
 * the client's `getAll`.
 */
export async function fetchUpTo<T extends object>(query: ListQuery<T>, wanted: number): Promise<Page<T>> {
  const { api, policyVersion = 'draft', parent = null, params, signal, maxBytes, most = Infinity } = query
  const count = Math.min(wanted, most)
  const page = await api.getPage(policyVersion, parent, { params: { ...params, max_results: count }, signal, maxBytes })
  const found = page.items.length
  const mayBeCut = found < count && found < (page.totalCount ?? 0) && found > 0 && found % PCE_PAGE === 0
  if (!mayBeCut) return page
  const all = await api.getAll(policyVersion, parent, { params, signal, maxBytes })
  // getAll reads the list in an asynchronous job. If the PCE offers no job for this type, getAll may return fewer
  // objects than the first request, whose result is then used instead.
  return { items: (all.length < found ? page.items : all).slice(0, count), totalCount: page.totalCount }
}
