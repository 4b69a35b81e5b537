import { BOUNDS, tooDeep, tooLarge, tooManyBytes, tooManyElements } from './bound-answers.js'
import { PceError } from './errors.js'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js'
import { inSlices, parseInTurns } from './parse-in-turns.js'

/** Elements are parsed together in batches of at least this much text: one parse per element would cost twice the time. */
const BATCH_BYTES = 256 * 1024
/** Or of this many elements: of the smallest, the same text would make objects of many times its size. */
const BATCH_ELEMENTS = 20_000

/** More is no matter of one turn of the event loop. */
const ONE_TURN = { bytes: 1024 * 1024, elements: 250_000 }

/** Longer than this the text between the first keys of two rows is not: bytes. */
const LONGEST_SEAM = 64

/** How much of a list is taken, in all. */
export interface ListBounds {
  rows?: number
  bytes?: number
  elements?: number
  /** Of one row. */
  rowBytes?: number
  rowElements?: number
}

/** A batch whose rows are still to be parsed. */
interface LateBatch {
  rows: unknown[]
  text: string
  mustHoldElements: boolean
}

/**
 * Takes a JSON array apart while it arrives, so that neither its text nor its parsed whole is ever held: bytes are scanned
 * for the commas between elements, aware of strings and escapes, and the text between two of them is parsed in batches.
 * Pieces may end anywhere, inside a UTF-8 sequence or an escape too.
 *
 * @throws {PceError} `invalid_response` for text that is no JSON array, is damaged, or ends too early; `body_too_large`, naming the
 *   bound, for more than `bounds`, for a row larger than any row, and for what is nested too deeply.
 */
export class JsonArraySplitter {
  readonly #bounds: ListBounds
  #rows = 0
  #bytes = 0
  /** Of all batches, and of those before the one that is being read. */
  #elements = 0
  #elementsBefore = 0

  #state: 'before' | 'inside' | 'after' = 'before'
  /** Nesting below the array itself. */
  #depth = 0
  #inString = false
  #escaped = false
  /** Text since the last batch, in pieces. */
  #pending: Buffer[] = []
  #pendingBytes = 0
  /** A batch has ended at a comma, so an element must follow. */
  #isContinued = false
  /**
   * What stands between two rows, from the bracket that closes one to the first key of the next, as the end of the first batch showed
   * it: most lists hold rows of one shape, and looking for this is many times faster than looking at every byte. Null where it has
   * misled, or must not be used.
   */
  #seam: Buffer | null | undefined

  /** What a push leaves to be parsed in turns; undefined where it parses everything at once. */
  #late: LateBatch[] | undefined

  constructor(bounds: ListBounds = {}) {
    this.#bounds = bounds
    // Who bounds the elements of the whole has to see each.
    if (bounds.elements !== undefined) this.#seam = null
  }

  /** The batches that this piece completes. */
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

  /** As `push`, but large rows are parsed in several turns of the event loop, which takes longer. */
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

  /** To be called when the text has ended. */
  end(): void {
    // What a leap has not found is still to be told apart: an array that did not end, or something after it.
    if (this.#state === 'inside' && this.#seam) this.#scanAgain(Buffer.alloc(0), 0, [])
    if (this.#state !== 'after') throw damaged(this.#state === 'before' ? 'it is empty' : 'it ends too early')
  }

  /** Index after the opening bracket. */
  #skipOpening(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && isSpace(chunk[at])) at += 1
    if (at === chunk.length) return at
    if (chunk[at] !== OPEN_ARRAY) throw damaged('it is not an array')
    this.#state = 'inside'
    return at + 1
  }

  /**
   * As `#scan`, from seam to seam. A text that ends at a seam is JSON only where no string or bracket is open, so one that parses is a
   * batch; at the first that does not, the bytes are looked at one by one again.
   */
  #leap(chunk: Buffer, from: number, batches: unknown[][]): number {
    const seam = this.#seam!
    let start = from
    for (;;) {
      const at = chunk.indexOf(seam, Math.max(start, start + BATCH_BYTES - this.#pendingBytes))
      if (at === -1) break
      // The seam begins with the bracket that closes the last row of the batch.
      const comma = chunk.indexOf(COMMA, at)
      // How many elements a large row has, only the scan counts.
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
    // No seam for so long: rows of another shape.
    return this.#pendingBytes + chunk.length - start > 4 * BATCH_BYTES ? this.#scanAgain(chunk, start, batches) : start
  }

  /** What was not looked at yet, byte by byte from here on. Index as of `#scan`. */
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
    // The rest of what was held comes before what this chunk leaves.
    this.#keep(text.subarray(start, held))
    return from
  }

  /** Index of the first byte that belongs to no batch yet. The loop sees every byte of the result: its state is local for speed. */
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
          // Between two rows nothing is open.
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

  /** The elements of what is held and this, and then nothing is held; undefined for what is no JSON, and then it still is. */
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
 * A large list, parsed in short turns: by batches of rows, many times faster than `parseInTurns` for rows of a usual size.
 *
 * @throws {PceError} `invalid_response` for what is no list.
 */
export async function parseListInTurns(text: string): Promise<unknown[]> {
  // The text is within the bounds of an answer, and so is each of its rows.
  const splitter = new JsonArraySplitter({ rowBytes: Infinity, rowElements: Infinity })
  const items: unknown[] = []
  await inSlices(text, async (slice) => {
    for (const batch of await splitter.pushInTurns(slice)) for (const item of batch) items.push(item)
  })
  splitter.end()
  return items
}

/** What stands between two rows around a comma: `},{"src":`, with its blanks. Undefined where it is not an object on both sides. */
function seamAt(chunk: Buffer, comma: number): Buffer | undefined {
  let begin = comma - 1
  while (begin > 0 && isSpace(chunk[begin])) begin -= 1
  const around = chunk.subarray(begin, begin + LONGEST_SEAM).toString('latin1')
  const seam = /^\}\s*,\s*\{\s*"[A-Za-z0-9_]+"\s*:/.exec(around)?.[0]
  return seam === undefined ? undefined : Buffer.from(seam, 'latin1')
}

/** Index of the last byte that is no blank; -1 for none. */
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
