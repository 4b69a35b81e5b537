/**
 * Returns the mark that shows that something is left out. Stored texts are HTML-encoded, so no other code can put the
 * mark into a page, and `isCut` can search for it.
 */
export const leftOutMark = (words: string): string => `<span class="cut">${words}</span>`
export const isCut = (rendered: string): boolean => rendered.includes('<span class="cut">')

/** The remaining number of bytes of HTML (`left`). */
export interface Room {
  left: number
}

/**
 * Renders items until there are `most` of them or the room is used up, and counts the items that are left out. The last
 * item may exceed the room, so `render` must limit the size of each item.
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
