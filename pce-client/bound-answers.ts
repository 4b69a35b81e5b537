import { PceError } from './errors.js'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js'

const MIB = 1024 * 1024

/** Size limits that can be set when a client is created, in MiB of uncompressed text. */
export interface AnswerSizes {
  /** Maximum size of a single answer of the PCE. Default 32. */
  maxAnswerMib: number
  /** Maximum size of a list that is collected from a job or a traffic query. Default 256. */
  maxListMib: number
}

/**
 * The limits for the answers that the client accepts (D74). Byte limits protect memory and count uncompressed text. The
 * number of elements (objects, lists and single values) is limited as well, because a few bytes of text can become an
 * object of many bytes in memory. The limits on elements and rows grow in proportion to the byte limits.
 */
export interface AnswerBounds {
  /** The limits for a single answer of the PCE. */
  body: { bytes: number; elements: number }
  /**
   * Limits for everything that is collected in memory: the result of a job, the rows of a traffic query or a downloaded
   * file.
   */
  collected: { bytes: number; elements: number; rows: number }
}

export function boundsOf({ maxAnswerMib, maxListMib }: AnswerSizes): AnswerBounds {
  const share = maxListMib / 256
  return {
    body: { bytes: maxAnswerMib * MIB, elements: Math.ceil((maxAnswerMib / 32) * 2_000_000) },
    collected: {
      bytes: maxListMib * MIB,
      elements: Math.ceil(share * 10_000_000),
      rows: Math.ceil(share * 500_000),
    },
  }
}

/** Limits that cannot be configured. No real answer comes close to them. */
export const BOUNDS = {
  /** Maximum size of a single row of a streamed list. */
  row: { bytes: 8 * MIB, elements: 1_000_000 },
  /** Maximum nesting of lists and objects; the PCE's own answers have about ten levels. */
  depth: 100,
} as const

/**
 * Creates the error for an answer that exceeds a limit. `what` describes the excess, for example "is larger than 32
 * MiB".
 */
export function tooLarge(what: string): PceError {
  return new PceError('body_too_large', `the answer ${what}; narrow it with filters or max_results`)
}

export function tooManyBytes(most: number): PceError {
  return tooLarge(`is larger than ${most < MIB ? `${most / 1024} KiB` : `${most / MIB} MiB`}`)
}

export function tooManyElements(most: number): PceError {
  return tooLarge(`has more than ${most.toLocaleString('en')} elements`)
}

export function tooDeep(): PceError {
  return tooLarge(`is nested more than ${BOUNDS.depth} levels deep`)
}

/**
 * Counts the elements and the nesting depth of a JSON text while it arrives, before it is parsed. This is necessary
 * because 31 KB of gzip can hold 32 MB of `[{},{},…`, which would become 2 GB of objects. The class does not check that
 * the text is valid JSON, and it ignores text that does not start with a bracket.
 */
export class JsonMeter {
  readonly #most: number
  #elements = 0
  #depth = 0
  #inString = false
  #escaped = false
  /** True if the text starts with a bracket; undefined until its first non-blank character has arrived. */
  #isJson: boolean | undefined

  constructor(mostElements: number) {
    this.#most = mostElements
  }

  /** Counts the elements of the next chunk. @throws {PceError} `body_too_large`, naming the limit. */
  take(chunk: Buffer): void {
    let at = this.#isJson === undefined ? this.#begin(chunk) : 0
    if (this.#isJson !== true) return
    let [inString, escaped, depth, elements] = [this.#inString, this.#escaped, this.#depth, this.#elements]
    for (; at < chunk.length; at += 1) {
      const byte = chunk[at]
      if (inString) {
        if (escaped) escaped = false
        else if (byte === QUOTE) inString = false
        else if (byte === BACKSLASH) escaped = true
      } else if (byte === QUOTE) {
        inString = true
      } else if (byte === COMMA) {
        elements += 1
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        elements += 1
        depth += 1
        if (depth > BOUNDS.depth) throw tooDeep()
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        depth -= 1
      }
    }
    this.#inString = inString
    this.#escaped = escaped
    this.#depth = depth
    this.#elements = elements
    if (elements > this.#most) throw tooManyElements(this.#most)
  }

  /**
   * Returns the index of the first non-blank character in the chunk (the chunk's length if there is none), and records
   * in `#isJson` whether this character is an opening bracket.
   */
  #begin(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && chunk[at]! <= 0x20) at += 1
    if (at < chunk.length) this.#isJson = chunk[at] === OPEN_ARRAY || chunk[at] === OPEN_OBJECT
    return at
  }
}
