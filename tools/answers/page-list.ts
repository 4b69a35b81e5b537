import type { ToolContext } from '../../domain/call.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_PAGE } from '../../schemas/paging.js'
import { scanEvery, type ScanQuery } from '../../domain/inventory/fetch-every.js'
import { countRowsThatFit, mostRowsThatFit } from './byte-budget.js'

/** The paging facts of one answer (D2). */
export interface Paging {
  total_count: number
  pce_total: number
  truncated: boolean
  next_cursor?: string
}

/**
 * Cuts a slice's rows to the answer budget and says how to go on. `rows` are the slice's items as they will be shown, one for
 * one; `envelope` is the rest of the answer, for its size.
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
  // A cursor carries an href, so its size is that of any other row's, near enough; a few bytes are kept for the difference.
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

/** Objects that are worth fetching for a page: no more than the caller wants, and than an answer can show of rows with these fields. */
export function pageSize(maxResults: number | undefined, limits: Limits, fields?: readonly string[]): number {
  return Math.min(maxResults ?? MAX_PAGE, mostRowsThatFit(limits, fields))
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
  /** The PCE has not sent all that the query asks for, and no page will have it. */
  isWithheld?: boolean
  /** Objects that the PCE sent to find them in; absent if the whole list was available. */
  seen?: number
}

/**
 * One page of a list, of which nothing else is kept (D132). The PCE has no offset, so the page is cut from what covers it while that
 * arrives. A filter the PCE cannot apply (`ownFilter`) is applied to every object, so that neither pages nor counts depend on where
 * it happened to match.
 */
export async function fetchSlice<T extends { href: string }>(
  query: ScanQuery<T>,
  position: Position,
  limit: number,
  ownFilter?: (item: T) => boolean,
): Promise<Slice<T>> {
  const { cut, ...page } = createPage(position, limit, ownFilter)
  // One more than the page needs tells whether something follows. Where the PCE does not say how many match, they are counted.
  const most = ownFilter === undefined ? position.offset + limit + 1 : Infinity
  let read = await scanEvery(query, { ...page, most })
  // Fewer than were asked for are all that can be had.
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

/** Bytes of JSON text that one page keeps of what the PCE sends; a page of larger objects has fewer. */
const KEPT_BYTES = 8 * 1024 * 1024

/** Keeps, of the objects that pass by, the page at a position, and counts those that match. */
function createPage<T extends { href: string }>(
  { offset, after }: Position,
  limit: number,
  test?: (item: T) => boolean,
) {
  // An anchor that is gone has moved whatever followed it one place up.
  const resumeAt = after === null ? offset : Math.max(0, offset - 1)
  let matches = 0
  /** Where the anchor was found; from there on the page is what follows it. */
  let anchor: number | null = null
  let kept = createKeep<T>(limit)
  return {
    onBegin() {
      matches = 0
      anchor = null
      kept = createKeep(limit)
    },
    onItems(items: readonly T[]) {
      for (const item of items) {
        if (test?.(item) === false) continue
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

/** The first objects of those it is given, within `limit` and KEPT_BYTES, but always one. */
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
 * A page of a list that is available in full. If the list has changed, the cursor's last object says where to continue, or its
 * position if that object is gone.
 */
export function sliceOfList<T extends { href: string }>(
  all: readonly T[],
  { offset, after }: Position,
  maxResults: number,
): Slice<T> {
  const at = after === null ? -1 : all.findIndex(({ href }) => href === after)
  // An anchor that is gone has moved whatever followed it one place up.
  const resumeAt = after === null ? offset : Math.max(0, offset - 1)
  const start = at === -1 ? Math.min(resumeAt, all.length) : at + 1
  const items = all.slice(start, start + maxResults)
  return { items, start, totalCount: all.length, pceTotal: all.length, more: start + items.length < all.length }
}

/** Where the next page begins. */
export interface Position {
  /** Matching objects already answered. */
  offset: number
  /** Href of the last of them: found again, it beats the offset, so that a deletion in between skips nothing. */
  after: string | null
  /**
   * Where one object is larger than an answer: its href, and how many of its parts were answered. By href, because another
   * object may stand at its place by the time the cursor comes back.
   */
  within: { href: string; parts: number } | null
}

const FIRST_PAGE: Position = { offset: 0, after: null, within: null }

/** Further than anyone pages: the PCE has no offset, so that a page costs all objects before it. */
const MAX_OFFSET = 250_000

/** Whose cursors: what is signed with, and how large an answer is. */
export type CursorContext = Pick<ToolContext, 'cursorKey' | 'limits'>

/**
 * An opaque cursor, signed for this caller, tool and filters (D79), so that one of another question cannot silently skip objects
 * of this one, and none can be made up. Undefined beyond the last position that is accepted.
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

/** The position a cursor stands for; the first page without one. Throws invalid_argument for anything but the caller's own cursor. */
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

/** What is signed; the order of filter properties does not matter, and absent ones are ignored. */
function textOf(tool: string, filters: object, body: unknown[]): Uint8Array {
  const sorted = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return new TextEncoder().encode(JSON.stringify([tool, sorted, body]))
}
