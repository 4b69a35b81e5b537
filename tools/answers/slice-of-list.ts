import type { Slice } from './fetch-slice.js'
import type { Position } from './list-cursor.js'

/**
 * A page of a list that is at hand as a whole. The cursor's last object tells where to go on when the list has changed since;
 * its place does where that object is gone.
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
