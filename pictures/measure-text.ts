/**
 * Three sets of characters: narrow, wide, and widest. Each set has one assumed width, given as a fraction of the font
 * size, which is an upper bound for the characters of that set in common system fonts.
 */
const NARROW = /[iljtfrI.,:;'|!()[\]{} /\\-]/
const WIDE = /[mwMW@%]/
const WIDEST = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\u{1F300}-\u{1FAFF}]/u

function widthOf(character: string): number {
  if (WIDEST.test(character)) return 1.05
  if (NARROW.test(character)) return 0.36
  if (WIDE.test(character)) return 0.9
  return /[A-Z]/.test(character) ? 0.7 : 0.58
}

/** The factor by which bold text is wider than regular text. */
export const BOLD = 1.08

/**
 * Estimates the width of a string in pixels at the given font size. The exact width is unknown, because the server has
 * no fonts and the picture is viewed on another machine.
 */
export function measureText(text: string, size: number): number {
  let width = 0
  for (const character of text) width += widthOf(character)
  return width * size
}

/** Shortens a string so that it fits into a width in pixels. An ellipsis replaces the omitted end. */
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
