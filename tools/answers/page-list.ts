import type { ToolContext } from '../../domain/call.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_PAGE } from '../../schemas/paging.js'
import { scanEvery, type ScanQuery } from '../../domain/inventory/fetch-every.js'
import { countRowsThatFit, mostRowsThatFit } from './byte-budget.js'

/** The paging fields of an answer (D2). */
export interface Paging {
  total_count: number
  pce_total: number
  truncated: boolean
  next_cursor?: string
}

/**
 * Cuts a page to the answer's budget and creates the cursor for the next page. `slice` contains the page's objects;
 * `rows` are the same objects in output form and in the same order. `envelope` has the answer's other fields, which
 * count towards its size.
 */
export async function answerPage<T extends { href: string }, R>(
  tool: string,
  filters: object,
  slice: Slice<T>,
  rows: readonly R[],
  ctx: CursorContext,
  envelope: object = {},
): Promise<{ rows: R[]; paging: Paging }> {
  const pagingAfter = async (kept: number): Promise<Paging> => {
    const more = slice.more || kept < rows.length
    const next = { offset: slice.start + kept, after: slice.items[kept - 1]?.href ?? null, within: null }
    const cursor = more ? await encodeCursor(ctx, tool, filters, next) : undefined
    return {
      total_count: slice.totalCount,
      pce_total: slice.pceTotal,
      truncated: more || slice.isWithheld === true,
      ...(cursor !== undefined && { next_cursor: cursor }),
    }
  }
  // The cursor contains an href whose length is not known yet, so its size is estimated from another row, with a few
  // bytes to spare.
  const cursorSample = await encodeCursor(ctx, tool, filters, {
    offset: MAX_OFFSET,
    after: slice.items[0]?.href ?? null,
    within: null,
  })
  const kept = countRowsThatFit(
    rows,
    { ...envelope, ...(await pagingAfter(0)), next_cursor: `${cursorSample}${' '.repeat(64)}` },
    ctx.limits,
  )
  return { rows: rows.slice(0, kept), paging: await pagingAfter(kept) }
}

/**
 * Returns how many objects to fetch for a page: as many as the caller wants, but no more than an answer with these
 * fields can show.
 */
export function pageSize(wanted: number, limits: Limits, fields?: readonly string[]): number {
  return Math.min(wanted, mostRowsThatFit(limits, fields))
}

/** The default page size of a list with levels of detail. Detail `full` shows as many rows as the budget permits. */
export const defaultSize = (
  detail: 'full' | 'standard' | 'compact' | 'labels_only' | undefined,
  most: number,
): number => (detail === 'full' ? MAX_PAGE : most)

export interface Slice<T> {
  /** The objects of this page, before they are cut to the budget. */
  items: T[]
  /** Position of this page's first object in the list of all matches, counted from 0. */
  start: number
  /** Number of objects that match all filters, including those that this server applies itself. */
  totalCount: number
  /** Number of matches that the PCE reported in X-Total-Count, which ignores this server's own filters. */
  pceTotal: number
  /** True if more matches follow. */
  more: boolean
  /** True if the PCE did not send all matching objects, so that some of them appear on no page. */
  isWithheld?: boolean
  /** Number of objects that the PCE sent; absent if this page was cut from a list that was already in memory. */
  seen?: number
}

/** A counter for all matching objects that are seen while a page is read, not only those on the page. */
export interface Tally<T> {
  /** Called before the first object, and again if the list is read a second time from its beginning. */
  begin(): void
  add(item: T): void
}

/**
 * Number of objects that are read for a tally, beyond what the page needs. Lists up to this length are counted
 * completely. Of longer lists, only this many objects are counted and the answer says so, because counting everything
 * would make the first look at a list slow.
 */
const MOST_TALLIED = 2_000

/**
 * Fetches one page of a list and keeps nothing else in memory (D132). The PCE's API has no offset, so the page is cut
 * from the stream while it arrives. A filter that the PCE cannot apply (`ownFilter`) is applied to every object, so
 * pages and counts do not depend on where the matches are. `tally` counts the matches that are seen.
 */
export async function fetchSlice<T extends { href: string }>(
  query: ScanQuery<T>,
  position: Position,
  limit: number,
  ownFilter?: (item: T) => boolean,
  tally?: Tally<T>,
): Promise<Slice<T>> {
  const { cut, ...page } = createPage(position, limit, ownFilter, tally)
  // One more object than the page needs is read, to see whether more follow. If the PCE does not report the number of
  // matches, the whole list is read and counted.
  const needed = Math.max(position.offset + limit + 1, tally === undefined ? 0 : MOST_TALLIED)
  const most = ownFilter === undefined ? needed : Infinity
  let read = await scanEvery(query, { ...page, most })
  // If the PCE returned fewer objects than requested, no more objects follow.
  let isEnd = read.isWhole || read.items < most
  if (!isEnd && read.matchCount === null) {
    read = await scanEvery(query, page)
    isEnd = true
  }
  const { start, items, matches } = cut()
  const counted = ownFilter === undefined && !read.isWhole ? (read.matchCount ?? 0) : 0
  const totalCount = Math.max(matches, counted)
  return {
    items,
    start,
    pceTotal: read.totalCount ?? read.items,
    totalCount,
    more: (isEnd ? matches : totalCount) > start + items.length,
    isWithheld: isEnd && !read.isWhole,
    seen: read.items,
  }
}

/**
 * Maximum size of the objects that are kept for one page, in bytes of JSON. A page of larger objects contains fewer.
 */
const KEPT_BYTES = 8 * 1024 * 1024

/**
 * Creates a receiver for the objects of a list. While the list is read, it keeps the objects of the page and counts all
 * matches.
 */
function createPage<T extends { href: string }>(
  { offset, after }: Position,
  limit: number,
  test?: (item: T) => boolean,
  tally?: Tally<T>,
) {
  // If the anchor object (`after`) was deleted, everything after it has moved up by one.
  const resumeAt = after === null ? offset : Math.max(0, offset - 1)
  let matches = 0
  /** Index at which the anchor was found; the page begins after it. */
  let anchor: number | null = null
  let kept = createKeep<T>(limit)
  return {
    onBegin() {
      matches = 0
      anchor = null
      kept = createKeep(limit)
      tally?.begin()
    },
    onItems(items: readonly T[]) {
      for (const item of items) {
        if (test?.(item) === false) continue
        tally?.add(item)
        const at = matches++
        if (after !== null && anchor === null && item.href === after) {
          anchor = at
          kept = createKeep(limit)
        } else if (anchor !== null || at >= resumeAt) {
          kept.add(item)
        }
      }
    },
    cut: () => ({ items: kept.items, matches, start: anchor === null ? Math.min(resumeAt, matches) : anchor + 1 }),
  }
}

/**
 * Creates a store for the first objects of a page. It keeps at most `limit` objects and KEPT_BYTES bytes, but at least
 * one object.
 */
function createKeep<T>(limit: number) {
  const items: T[] = []
  let left = KEPT_BYTES
  return {
    items,
    add(item: T) {
      if (items.length >= limit || left <= 0) return
      left -= JSON.stringify(item).length
      if (left > 0 || items.length === 0) items.push(item)
    },
  }
}

/**
 * Cuts a page from a list that is completely in memory. If the list has changed, the page continues after the cursor's
 * last object or, if that object no longer exists, at the cursor's position.
 */
export function sliceOfList<T extends { href: string }>(
  all: readonly T[],
  { offset, after }: Position,
  maxResults: number,
): Slice<T> {
  const at = after === null ? -1 : all.findIndex(({ href }) => href === after)
  // If the anchor object (`after`) was deleted, everything after it has moved up by one.
  const resumeAt = after === null ? offset : Math.max(0, offset - 1)
  const start = at === -1 ? Math.min(resumeAt, all.length) : at + 1
  const items = all.slice(start, start + maxResults)
  return { items, start, totalCount: all.length, pceTotal: all.length, more: start + items.length < all.length }
}

/** The position at which the next page begins. */
export interface Position {
  /** Number of matching objects already returned. */
  offset: number
  /**
   * Href of the last returned object. If it is found again, it counts more than the offset, so that no object is
   * skipped because others were deleted in between.
   */
  after: string | null
  /**
   * The href of an object that is larger than an answer, and the number of its parts that were already returned; null
   * if there is none. The href is needed because another object may have moved to this position by the next request.
   */
  within: { href: string; parts: number } | null
}

const FIRST_PAGE: Position = { offset: 0, after: null, within: null }

/**
 * Maximum offset of a cursor. The PCE's API has no offset, so all objects before a page must be read to reach it. In
 * practice, nobody pages this far.
 */
const MAX_OFFSET = 250_000

/** What cursors need from a tool's context: the signing key and the maximum size of an answer. */
export type CursorContext = Pick<ToolContext, 'cursorKey' | 'limits'>

/**
 * Creates an opaque cursor, signed for this caller, tool and filters (D79). The signature prevents forged cursors, and
 * cursors that are used for another question, for which they would silently skip objects. Returns undefined if the
 * position is beyond the maximum offset.
 */
export async function encodeCursor(
  { cursorKey }: Pick<CursorContext, 'cursorKey'>,
  tool: string,
  filters: object,
  position: Position,
): Promise<string | undefined> {
  const { offset, after, within } = position
  if (!isCount(offset)) return undefined
  const body = [offset, after, within?.href ?? null, within?.parts ?? 0]
  const seal = await crypto.subtle.sign('HMAC', await keyOf(cursorKey()), textOf(tool, filters, body))
  return Buffer.from(JSON.stringify([...body, Buffer.from(seal).toString('base64url')])).toString('base64url')
}

/**
 * Returns the position in a cursor, or that of the first page if there is no cursor. Throws invalid_argument for any
 * cursor that was not issued to this caller for this question.
 */
export async function decodeCursor(
  { cursorKey }: Pick<CursorContext, 'cursorKey'>,
  tool: string,
  filters: object,
  cursor: string | undefined,
): Promise<Position> {
  if (cursor === undefined) return FIRST_PAGE
  const [offset, after, href, parts, seal] = parse(cursor)
  const wellFormed =
    isCount(offset) && isCount(parts) && isHrefOrNull(after) && isHrefOrNull(href) && typeof seal === 'string'
  const isOurs =
    wellFormed &&
    (await crypto.subtle.verify(
      'HMAC',
      await keyOf(cursorKey()),
      Buffer.from(seal, 'base64url'),
      textOf(tool, filters, [offset, after, href, parts]),
    ))
  if (!isOurs) {
    throw new ToolError(
      'invalid_argument',
      'cursor was not issued to you by this tool for these arguments.',
      { argument: 'cursor' },
      { hint: 'Repeat the call without cursor, or with the arguments the cursor came with.' },
    )
  }
  return { offset, after, within: href === null ? null : { href, parts } }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_OFFSET
}

function isHrefOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function parse(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

const keyOf = (key: Uint8Array) =>
  crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])

/** Returns the string to sign. The order of filter properties does not matter, and undefined properties are ignored. */
function textOf(tool: string, filters: object, body: unknown[]): Uint8Array {
  const sorted = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return new TextEncoder().encode(JSON.stringify([tool, sorted, body]))
}
