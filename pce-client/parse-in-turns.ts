import { JSONParser } from '@streamparser/json'
import { PceError } from './errors.js'
import { JsonArraySplitter } from './split-json-array.js'
import { createTurns } from './take-turns.js'

const SLICE_CHARACTERS = 64 * 1024
/** A row that is larger is no matter of one turn. */
const LARGEST_ROW_BYTES = 1024 * 1024

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

/**
 * A large list, parsed in short turns: by batches of rows, many times faster than `parseInTurns` for rows of a usual size.
 *
 * @throws {PceError} `invalid_response` for what is no list. Undefined for one with a large row that is no JSON.
 */
export async function parseListInTurns(text: string): Promise<unknown> {
  const splitter = new JsonArraySplitter({ rowBytes: LARGEST_ROW_BYTES })
  const items: unknown[] = []
  try {
    await inSlices(text, (slice) => {
      for (const batch of splitter.push(slice)) for (const item of batch) items.push(item)
    })
  } catch (error) {
    if (error instanceof PceError && error.code === 'body_too_large') return (await parseInTurns(text))?.value
    throw error
  }
  splitter.end()
  return items
}

async function inSlices(text: string, take: (slice: Buffer) => void): Promise<void> {
  const endTurn = createTurns()
  for (let at = 0; at < text.length;) {
    // The two halves of a surrogate pair are one character in UTF-8.
    const end = at + SLICE_CHARACTERS + (/[\uD800-\uDBFF]/.test(text[at + SLICE_CHARACTERS - 1] ?? '') ? 1 : 0)
    take(Buffer.from(text.slice(at, end)))
    at = end
    await endTurn()
  }
}
