/** Widths of a character in system fonts, in parts of the font size: what no font needs more of. */
const NARROW = /[iljtfrI.,:;'|!()[\]{} /\\-]/
const WIDE = /[mwMW@%]/
const WIDEST = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\u{1F300}-\u{1FAFF}]/u

function widthOf(character: string): number {
  if (WIDEST.test(character)) return 1.05
  if (NARROW.test(character)) return 0.36
  if (WIDE.test(character)) return 0.9
  return /[A-Z]/.test(character) ? 0.7 : 0.58
}

/** How much wider the same text is in bold. */
export const BOLD = 1.08

/** About how wide a text is, in pixels at this font size. The server has no fonts to ask, and a picture is not drawn where it is seen. */
export function measureText(text: string, size: number): number {
  let width = 0
  for (const character of text) width += widthOf(character)
  return width * size
}

/** A text that is at most so wide, with an ellipsis where something is left out. */
export function clipToWidth(text: string, width: number, size: number): string {
  if (measureText(text, size) <= width) return text
  let left = width - measureText('…', size)
  let kept = ''
  for (const character of text) {
    left -= widthOf(character) * size
    if (left < 0) break
    kept += character
  }
  return `${kept.trimEnd()}…`
}
