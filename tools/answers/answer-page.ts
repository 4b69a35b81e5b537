import type { Limits } from '../../schemas/config.js'
import type { Slice } from './fetch-slice.js'
import { encodeCursor } from './list-cursor.js'
import { countRowsThatFit } from './split-format.js'

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
  limits: Limits,
  envelope: object = {},
): Promise<{ rows: R[]; paging: Paging }> {
  const pagingAfter = async (kept: number): Promise<Paging> => {
    const more = slice.more || kept < rows.length
    const next = { offset: slice.start + kept, after: slice.items[kept - 1]?.href ?? null, within: null }
    return {
      total_count: slice.totalCount,
      pce_total: slice.pceTotal,
      truncated: more,
      ...(more ? { next_cursor: await encodeCursor(tool, filters, next) } : {}),
    }
  }
  // A cursor carries an href, so its size is that of any other row's, near enough; a few bytes are kept for the difference.
  const cursorSample = await encodeCursor(tool, filters, {
    offset: 1_000_000,
    after: slice.items[0]?.href ?? null,
    within: null,
  })
  const kept = countRowsThatFit(
    rows,
    { ...envelope, ...(await pagingAfter(0)), next_cursor: `${cursorSample}${' '.repeat(64)}` },
    limits,
  )
  return { rows: rows.slice(0, kept), paging: await pagingAfter(kept) }
}
