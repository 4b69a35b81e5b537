import { BOUNDS, tooDeep, tooLarge, tooManyBytes, tooManyElements } from './bound-answers.js'
import { PceError } from './errors.js'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js'
import { inSlices, parseInTurns } from './parse-in-turns.js'

/**
 * Minimum size of a batch in bytes. Rows are parsed in batches, because parsing each row separately would take twice
 * the time.
 */
const BATCH_BYTES = 256 * 1024
/**
 * Maximum number of elements in a batch. It is needed because text of the same size occupies many times as much memory
 * when its elements are very small.
 */
const BATCH_ELEMENTS = 20_000

/** Maximum size of a batch that is parsed in a single turn of the event loop. */
const ONE_TURN = { bytes: 1024 * 1024, elements: 250_000 }

/** Maximum length in bytes of the seam: the bytes between two rows (see `#seam`). */
const LONGEST_SEAM = 64

/** The limits for a whole list. */
export interface ListBounds {
  rows?: number
  bytes?: number
  elements?: number
  /** The limits for a single row of the list. */
  rowBytes?: number
  rowElements?: number
}

/** A batch of rows that has been split off but not parsed yet. */
interface LateBatch {
  rows: unknown[]
  text: string
  mustHoldElements: boolean
}

/**
 * Splits a JSON array into batches of rows while it arrives, so that the complete text and the complete list of rows
 * are never held in memory. It scans the bytes for the commas between rows, taking strings and escapes into account,
 * and parses the text between two such commas. Chunks may end anywhere, even inside a UTF-8 sequence or an escape.
 *
 * @throws {PceError} `invalid_response` for text that is not a JSON array, is damaged, or ends too early;
 *   `body_too_large`, naming the limit, if the list exceeds `bounds`, has a row that is too large, or is nested too
 *   deeply.
 */
export class JsonArraySplitter {
  readonly #bounds: ListBounds
  #rows = 0
  #bytes = 0
  /** Number of elements that have been scanned. `#elementsBefore` is the number of those in finished batches. */
  #elements = 0
  #elementsBefore = 0

  #state: 'before' | 'inside' | 'after' = 'before'
  /** How deeply the current position is nested below the array itself. */
  #depth = 0
  #inString = false
  #escaped = false
  /** Pieces of text that belong to the next batch. */
  #pending: Buffer[] = []
  #pendingBytes = 0
  /** True if the last batch ended at a comma, so that another element must follow. */
  #isContinued = false
  /**
   * The seam: the bytes between two rows, from the closing bracket of one to the first key of the next, as found at the
   * end of the first batch. Most lists have rows of one shape, and searching for these bytes is many times faster than
   * examining every byte. Null if the seam must not be used or has proved unreliable; undefined before the first batch.
   */
  #seam: Buffer | null | undefined

  /** Batches that `push` has left for later turns of the event loop; undefined if everything is parsed at once. */
  #late: LateBatch[] | undefined

  constructor(bounds: ListBounds = {}) {
    this.#bounds = bounds
    // Counting all elements requires looking at every byte, which rules out the seam search.
    if (bounds.elements !== undefined) this.#seam = null
  }

  /** Takes a chunk and returns the batches that it completes. */
  push(chunk: Buffer): unknown[][] {
    const { bytes = Infinity, elements = Infinity } = this.#bounds
    this.#bytes += chunk.length
    if (this.#bytes > bytes) throw tooManyBytes(bytes)
    const batches: unknown[][] = []
    let start = this.#state === 'before' ? this.#skipOpening(chunk) : 0
    if (this.#state === 'inside')
      start = this.#seam ? this.#leap(chunk, start, batches) : this.#scan(chunk, start, batches)
    if (this.#state === 'after') {
      if (!isBlank(chunk, start)) throw damaged('there is text after the array')
    } else if (this.#state === 'inside' && start < chunk.length) {
      this.#keep(chunk.subarray(start))
    }
    if (this.#elements > elements) throw tooManyElements(elements)
    return batches
  }

  /** Like `push`, but parses large rows in several turns of the event loop, which takes longer in all. */
  async pushInTurns(chunk: Buffer): Promise<unknown[][]> {
    const late: LateBatch[] = (this.#late = [])
    const batches = this.push(chunk)
    for (const { rows, text, mustHoldElements } of late) {
      const parsed = (await parseInTurns(text))?.value
      if (!Array.isArray(parsed)) throw damaged('it is not valid JSON')
      if (mustHoldElements && parsed.length === 0) throw damaged('an element is missing')
      for (const row of parsed) rows.push(row)
      this.#countRows(rows.length)
    }
    return batches
  }

  /** Must be called at the end of the text. @throws {PceError} if the array is incomplete. */
  end(): void {
    // Text that is still pending is scanned byte by byte, which distinguishes an array that is not finished from extra
    // text after the array.
    if (this.#state === 'inside' && this.#seam) this.#scanAgain(Buffer.alloc(0), 0, [])
    if (this.#state !== 'after') throw damaged(this.#state === 'before' ? 'it is empty' : 'it ends too early')
  }

  /** Skips to the opening bracket, and returns the index after it. */
  #skipOpening(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && isSpace(chunk[at])) at += 1
    if (at === chunk.length) return at
    if (chunk[at] !== OPEN_ARRAY) throw damaged('it is not an array')
    this.#state = 'inside'
    return at + 1
  }

  /**
   * Splits a chunk like `#scan`, but jumps from seam to seam (see `#seam`) instead of examining every byte. If the text
   * up to a seam parses as JSON, no string or bracket is open there, so the text is a batch. At the first text that
   * does not parse, the method falls back to scanning byte by byte.
   */
  #leap(chunk: Buffer, from: number, batches: unknown[][]): number {
    const seam = this.#seam!
    let start = from
    for (;;) {
      const at = chunk.indexOf(seam, Math.max(start, start + BATCH_BYTES - this.#pendingBytes))
      if (at === -1) break
      // The seam begins with the bracket that closes the last row of the batch.
      const comma = chunk.indexOf(COMMA, at)
      // A large row is scanned byte by byte, because its elements are limited and only that scan counts them.
      const isLarge = this.#late !== undefined && this.#pendingBytes + comma - start > 2 * BATCH_BYTES
      const batch = isLarge ? undefined : this.#tryParse(chunk.subarray(start, comma))
      if (batch === undefined) return this.#scanAgain(chunk, start, batches)
      batches.push(batch)
      this.#isContinued = true
      start = comma + 1
    }
    const end = lastPrinted(chunk, start)
    if (end !== -1 && chunk[end] === CLOSE_ARRAY) {
      const last = this.#tryParse(chunk.subarray(start, end))
      if (last !== undefined) {
        if (last.length === 0) throw damaged('an element is missing')
        batches.push(last)
        this.#state = 'after'
        return end + 1
      }
    }
    // If a long stretch of text does not contain the seam, its rows have another form than the earlier ones.
    return this.#pendingBytes + chunk.length - start > 4 * BATCH_BYTES ? this.#scanAgain(chunk, start, batches) : start
  }

  /**
   * Stops searching for the seam between two rows, and scans the pending text and the rest of the chunk byte by byte.
   * Returns the index in `chunk` of the first byte that belongs to no batch yet.
   */
  #scanAgain(chunk: Buffer, from: number, batches: unknown[][]): number {
    this.#seam = null
    const held = this.#pendingBytes
    const text = Buffer.concat([...this.#pending, chunk.subarray(from)])
    this.#pending = []
    this.#pendingBytes = 0
    const start = this.#scan(text, 0, batches)
    if (this.#state === 'after' && !isBlank(text, start)) throw damaged('there is text after the array')
    if (this.#state === 'after') return chunk.length
    if (start >= held) return from + start - held
    // The last part of the pending text belongs to no batch yet. It stays pending, and the next chunk will be appended
    // to it.
    this.#keep(text.subarray(start, held))
    return from
  }

  /**
   * Scans a chunk and returns the index of the first byte that belongs to no batch yet. The state is kept in local
   * variables for speed, because the loop sees every byte.
   */
  #scan(chunk: Buffer, from: number, batches: unknown[][]): number {
    let inString = this.#inString
    let escaped = this.#escaped
    let depth = this.#depth
    let elements = this.#elements
    let start = from
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at]
      if (inString) {
        if (escaped) escaped = false
        else if (byte === QUOTE) inString = false
        else if (byte === BACKSLASH) escaped = true
      } else if (byte === QUOTE) {
        inString = true
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        depth += 1
        elements += 1
        if (depth >= BOUNDS.depth) throw tooDeep()
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        depth -= 1
        if (depth < 0) {
          this.#elements = elements
          this.#closeArray(chunk.subarray(start, at), batches)
          return at + 1
        }
      } else if (byte === COMMA) {
        elements += 1
        if (depth !== 0) continue
        const isBatch =
          this.#pendingBytes + at - start >= BATCH_BYTES || elements - this.#elementsBefore >= BATCH_ELEMENTS
        if (!isBatch) continue
        this.#elements = elements
        this.#parse(chunk.subarray(start, at), true, batches)
        this.#isContinued = true
        start = at + 1
        if (this.#seam === undefined) {
          this.#seam = seamAt(chunk, at)
          if (this.#seam === undefined) continue
          // This comma is between two rows, so no string or bracket is open.
          this.#depth = 0
          this.#inString = false
          this.#escaped = false
          return this.#leap(chunk, start, batches)
        }
      }
    }
    this.#inString = inString
    this.#escaped = escaped
    this.#depth = depth
    this.#elements = elements
    return start
  }

  #closeArray(rest: Buffer, batches: unknown[][]): void {
    this.#parse(rest, this.#isContinued, batches)
    this.#state = 'after'
  }

  #keep(rest: Buffer): void {
    this.#pending.push(rest)
    this.#pendingBytes += rest.length
    const { rowBytes = BOUNDS.row.bytes } = this.#bounds
    if (this.#pendingBytes > BATCH_BYTES + rowBytes)
      throw tooLarge(`has a row that is too large, above ${rowBytes / 1024 / 1024} MiB`)
  }

  #parse(tail: Buffer, mustHoldElements: boolean, batches: unknown[][]): void {
    const { rowElements = BOUNDS.row.elements } = this.#bounds
    const elements = this.#elements - this.#elementsBefore
    if (elements > rowElements) throw tooManyElements(rowElements)
    this.#elementsBefore = this.#elements
    const isLarge = this.#pendingBytes + tail.length > ONE_TURN.bytes || elements > ONE_TURN.elements
    if (isLarge && this.#late !== undefined) {
      const rows: unknown[] = []
      batches.push(rows)
      this.#late.push({ rows, text: `[${this.#textWith(tail)}]`, mustHoldElements })
      this.#pending = []
      this.#pendingBytes = 0
      return
    }
    const rows = this.#tryParse(tail)
    if (rows === undefined) throw damaged('it is not valid JSON')
    if (mustHoldElements && rows.length === 0) throw damaged('an element is missing')
    if (rows.length > 0) batches.push(rows)
  }

  /**
   * Parses the pending text plus `tail`. On success it clears the pending text and returns the rows; if the text is not
   * valid JSON, it returns undefined and keeps the pending text.
   */
  #tryParse(tail: Buffer): unknown[] | undefined {
    let elements: unknown[]
    try {
      elements = JSON.parse(`[${this.#textWith(tail)}]`) as unknown[]
    } catch {
      return undefined
    }
    this.#pending = []
    this.#pendingBytes = 0
    this.#countRows(elements.length)
    return elements
  }

  #textWith(tail: Buffer): string {
    return this.#pending.length === 0 ? tail.toString('utf8') : Buffer.concat([...this.#pending, tail]).toString('utf8')
  }

  #countRows(more: number): void {
    const { rows: most = Infinity } = this.#bounds
    this.#rows += more
    if (this.#rows > most) throw tooLarge(`has more than ${most.toLocaleString('en')} rows`)
  }
}

/**
 * Parses a large list in short steps, between which the event loop can do other work. Because it parses rows in
 * batches, it is many times faster than `parseInTurns` for rows of normal size.
 *
 * @throws {PceError} `invalid_response` if the text is not a list.
 */
export async function parseListInTurns(text: string): Promise<unknown[]> {
  // Each row is within the limits, because the whole text is within the limits for a single answer.
  const splitter = new JsonArraySplitter({ rowBytes: Infinity, rowElements: Infinity })
  const items: unknown[] = []
  await inSlices(text, async (slice) => {
    for (const batch of await splitter.pushInTurns(slice)) for (const item of batch) items.push(item)
  })
  splitter.end()
  return items
}

/**
 * Returns the bytes around the comma between two rows, including blanks, for example `},{"src":`. Returns undefined
 * unless both rows are objects.
 */
function seamAt(chunk: Buffer, comma: number): Buffer | undefined {
  let begin = comma - 1
  while (begin > 0 && isSpace(chunk[begin])) begin -= 1
  const around = chunk.subarray(begin, begin + LONGEST_SEAM).toString('latin1')
  const seam = /^\}\s*,\s*\{\s*"[A-Za-z0-9_]+"\s*:/.exec(around)?.[0]
  return seam === undefined ? undefined : Buffer.from(seam, 'latin1')
}

/** Returns the index of the last non-blank byte in `chunk`, or -1 if there is none from the index `from` on. */
function lastPrinted(chunk: Buffer, from: number): number {
  let at = chunk.length - 1
  while (at >= from && isSpace(chunk[at])) at -= 1
  return at >= from ? at : -1
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function isBlank(chunk: Buffer, from: number): boolean {
  for (let at = from; at < chunk.length; at += 1) if (!isSpace(chunk[at])) return false
  return true
}

function damaged(why: string): PceError {
  return new PceError('invalid_response', `the result is not a usable list: ${why}`)
}
