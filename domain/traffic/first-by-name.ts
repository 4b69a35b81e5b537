import { compareTexts } from '../text/compare-values.js'
import { pickTop } from './pick-top.js'

/** The first `limit` of some texts in the order of their characters, without putting all of them in order. */
export function firstByName(texts: readonly string[], limit: number): string[] {
  const compare = (a: number, b: number) => compareTexts(texts[a] as string, texts[b] as string)
  return pickTop(texts.length, limit, 0, () => 0, compare).top.map((at) => texts[at] as string)
}
