/**
 * Says where something is left out. Stored texts are encoded, so nothing but this can put the mark into a page: whether any of a rendered part
 * is missing can be told by it.
 */
export const leftOutMark = (words: string): string => `<span class="cut">${words}</span>`
export const isCut = (rendered: string): boolean => rendered.includes('<span class="cut">')

/** Bytes of HTML that may still be written. */
export interface Room {
  left: number
}

/**
 * Pieces of HTML for the first items, at most `most` of them and until the room is used up, and how many items are left out. The last
 * piece may take more than there was left, so a piece has to be bounded itself.
 */
export function fit<Item>(
  items: readonly Item[],
  room: Room,
  render: (item: Item, at: number) => string,
  most = Infinity,
): { html: string; omitted: number } {
  const pieces: string[] = []
  for (const [at, item] of items.entries()) {
    if (at >= most || room.left <= 0) break
    const piece = render(item, at)
    room.left -= Buffer.byteLength(piece)
    pieces.push(piece)
  }
  return { html: pieces.join(''), omitted: items.length - pieces.length }
}
