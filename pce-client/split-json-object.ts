import { type AnswerBounds, BOUNDS, JsonMeter, tooLarge } from './bound-answers.js'
import { PceError } from './errors.js'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js'
import { parseInTurns } from './parse-in-turns.js'
import type { PartsSink } from './types.js'

/** Minimum size of a batch of list items in bytes, because parsing each item separately would take twice the time. */
const BATCH_BYTES = 64 * 1024
/** Maximum number of bytes of JSON that are parsed in a single turn of the event loop. */
const ONE_TURN = 1024 * 1024

/**
 * Splits a JSON object into its fields while it arrives. If the value of a field is a list, the list is split into
 * batches of items, so that neither the object's text nor a whole list is ever held in memory. Chunks may end anywhere.
 *
 * @throws {PceError} `invalid_response` for text that is not a JSON object, is damaged, has a field twice, or ends too
 *   early; `body_too_large` if it exceeds `bounds`, has a field or item that is too large, or is nested too deeply.
 */
export class JsonObjectSplitter {
  readonly #sink: PartsSink
  readonly #meter: JsonMeter
  readonly #fields = new Set<string>()
  #state: 'before' | 'inside' | 'after' = 'before'
  /** How deeply the current position is nested below the object itself. */
  #depth = 0
  #inString = false
  #escaped = false
  /** Name of the field whose list is being read; undefined while no list is being read. */
  #list: string | undefined
  /** Number of items of the current list that have been passed on. */
  #items = 0
  /** True between the end of a field's list and the comma or bracket after it. */
  #isListOver = false
  #pending: Buffer[] = []
  #pendingBytes = 0

  constructor(bounds: AnswerBounds['body'], sink: PartsSink) {
    this.#sink = sink
    this.#meter = new JsonMeter(bounds.elements)
  }

  /** Takes a chunk, and passes on the parts that it completes. */
  async push(chunk: Buffer): Promise<void> {
    this.#meter.take(chunk)
    let start = 0
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at]!
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (byte === QUOTE) this.#inString = false
        else if (byte === BACKSLASH) this.#escaped = true
        continue
      }
      if (this.#state !== 'inside') {
        start = at + 1
        if (byte <= 0x20) continue
        if (this.#state === 'after' || byte !== OPEN_OBJECT) throw damaged()
        this.#state = 'inside'
      } else if (byte === QUOTE) {
        this.#inString = true
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (this.#depth === 0 && byte === OPEN_ARRAY) {
          await this.#beginList(this.#textTo(chunk.subarray(start, at)))
          start = at + 1
        }
        this.#depth += 1
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (this.#depth === 0) {
          if (byte !== CLOSE_OBJECT) throw damaged()
          await this.#endField(this.#textTo(chunk.subarray(start, at)), true)
          this.#state = 'after'
          start = at + 1
        } else if (--this.#depth === 0 && this.#list !== undefined) {
          await this.#passItems(this.#textTo(chunk.subarray(start, at)), byte === CLOSE_ARRAY)
          this.#list = undefined
          this.#isListOver = true
          start = at + 1
        }
      } else if (byte === COMMA) {
        if (this.#depth === 0) {
          await this.#endField(this.#textTo(chunk.subarray(start, at)), false)
          start = at + 1
        } else if (this.#depth === 1 && this.#list !== undefined && this.#pendingBytes + at - start >= BATCH_BYTES) {
          await this.#passItems(this.#textTo(chunk.subarray(start, at)), false)
          start = at + 1
        }
      }
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** Must be called at the end of the text. @throws {PceError} if the object is incomplete. */
  end(): void {
    if (this.#state !== 'after') throw damaged()
  }

  async #beginList(head: string): Promise<void> {
    if (this.#isListOver) throw damaged()
    // `head` is the name of a field and a colon. The value 0 is added to make it valid JSON.
    const [field] = Object.keys((await parse(`{${head}0}`)) as object)
    if (field === undefined) throw damaged()
    this.#note(field)
    this.#list = field
    this.#items = 0
    await this.#sink.onItems(field, [])
  }

  async #passItems(text: string, isLast: boolean): Promise<void> {
    const items = (await parse(`[${text}]`)) as unknown[]
    if (items.length === 0 && !(isLast && this.#items === 0)) throw damaged()
    this.#items += items.length
    await this.#sink.onItems(this.#list!, items)
  }

  async #endField(text: string, isLast: boolean): Promise<void> {
    if (this.#isListOver) {
      if (text.trim() !== '') throw damaged()
      this.#isListOver = false
      return
    }
    const [one, ...others] = Object.entries((await parse(`{${text}}`)) as object) as [string, unknown][]
    if (others.length > 0 || (one === undefined && !(isLast && this.#fields.size === 0))) throw damaged()
    if (one === undefined) return
    this.#note(one[0])
    await this.#sink.onField(...one)
  }

  #note(field: string): void {
    if (this.#fields.has(field)) throw damaged()
    this.#fields.add(field)
  }

  #keep(rest: Buffer): void {
    this.#pending.push(rest)
    this.#pendingBytes += rest.length
    if (this.#pendingBytes > BATCH_BYTES + BOUNDS.row.bytes)
      throw tooLarge(`has a part that is too large, above ${BOUNDS.row.bytes / ONE_TURN} MiB`)
  }

  #textTo(tail: Buffer): string {
    const text = Buffer.concat([...this.#pending, tail]).toString('utf8')
    this.#pending = []
    this.#pendingBytes = 0
    return text
  }
}

async function parse(text: string): Promise<unknown> {
  if (text.length > ONE_TURN) {
    const parsed = await parseInTurns(text)
    if (parsed === null) throw damaged()
    return parsed.value
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw damaged()
  }
}

const damaged = () => new PceError('invalid_response', 'the answer is not a usable object')
