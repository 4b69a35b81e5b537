import { JSONParser } from '@streamparser/json'
import { shareTurn } from './take-turns.js'

const SLICE_CHARACTERS = 64 * 1024

/**
 * What a large JSON text says, parsed in short turns: JSON.parse takes up to two seconds for what fits into the bounds of an answer,
 * and nobody else is served meanwhile. Null for what is no JSON.
 */
export async function parseInTurns(text: string): Promise<{ value: unknown } | null> {
  // The whole value alone, without a copy of each level on the way there.
  const parser = new JSONParser({ paths: ['$'], keepStack: false })
  let result: { value: unknown } | undefined
  parser.onValue = ({ value }) => (result = { value })
  try {
    await inSlices(text, (slice) => parser.write(slice))
    if (!parser.isEnded) parser.end()
  } catch {
    return null
  }
  return result ?? null
}

/** Hands a text over in slices, each in a turn of the event loop that has time for it. */
export async function inSlices(text: string, take: (slice: Buffer) => void | Promise<void>): Promise<void> {
  for (let at = 0; at < text.length;) {
    // The two halves of a surrogate pair are one character in UTF-8.
    const end = at + SLICE_CHARACTERS + (/[\uD800-\uDBFF]/.test(text[at + SLICE_CHARACTERS - 1] ?? '') ? 1 : 0)
    await shareTurn()
    await take(Buffer.from(text.slice(at, end)))
    at = end
  }
}
