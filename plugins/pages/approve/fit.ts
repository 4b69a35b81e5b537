/**
 * Returns the HTML that marks where a page leaves something out. Stored texts are HTML-encoded before they enter a
 * page, so they cannot contain this HTML, and `isCut` can search a page for it.
 */
export const leftOutMark = (words: string): string => `<span class="cut">${words}</span>`
export const isCut = (rendered: string): boolean => rendered.includes('<span class="cut">')

/** The space on a page for a list. `left` is the number of bytes of HTML that may still be rendered. */
export interface Room {
  left: number
}

/**
 * Renders items until `most` of them are rendered or `room` has no bytes left. `omitted` is the number of items that
 * are not rendered. The last rendered item may take more bytes than were left, so `render` must limit the size of each
 * item.
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
