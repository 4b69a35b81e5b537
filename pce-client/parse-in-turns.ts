import { JSONParser } from '@streamparser/json'
import { shareTurn } from './take-turns.js'

const SLICE_CHARACTERS = 64 * 1024

/**
 * Parses a large JSON text in short steps, because JSON.parse may block the event loop for up to two seconds on an
 * answer within the size limits. Returns null if the text is not JSON.
 */
export async function parseInTurns(text: string): Promise<{ value: unknown } | null> {
  // Only the complete value is needed, so the parser does not keep the unfinished values of outer nesting levels.
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

/** Passes a long string to `take` in slices, and lets the event loop do other work between slices when needed. */
export async function inSlices(text: string, take: (slice: Buffer) => void | Promise<void>): Promise<void> {
  for (let at = 0; at < text.length;) {
    // A slice must not separate the two halves of a surrogate pair, which together are one character in UTF-8.
    const end = at + SLICE_CHARACTERS + (/[\uD800-\uDBFF]/.test(text[at + SLICE_CHARACTERS - 1] ?? '') ? 1 : 0)
    await shareTurn()
    await take(Buffer.from(text.slice(at, end)))
    at = end
  }
}
