import { PceError } from './errors.js'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-bytes.js'

const MIB = 1024 * 1024

/** What the owner of a client sets: MiB of text, after it was unpacked. */
export interface AnswerSizes {
  /** Of one answer. Default 32. */
  maxAnswerMib: number
  /** Of a list that the PCE has written in a job or a query, where all of it is collected. Default 256. */
  maxListMib: number
}

/**
 * How much of an answer is taken (D74). Bounds on bytes are for what is held in memory, after it was unpacked; elements are
 * objects, lists and the values between their commas, since a few bytes of text make an object of many: they and rows grow with the
 * bytes.
 */
export interface AnswerBounds {
  /** One answer. */
  body: { bytes: number; elements: number }
  /** What a collection's job has written, the rows of a traffic query that are collected, and a file that is downloaded into memory. */
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

/** What no estate needs more of. */
export const BOUNDS = {
  /** One row of a list. */
  row: { bytes: 8 * MIB, elements: 1_000_000 },
  /** Lists and objects inside each other; the PCE's own have about ten. */
  depth: 100,
} as const

/** What to say when an answer does not fit. `what` names the bound: "is larger than 32 MiB". */
export function tooLarge(what: string): PceError {
  return new PceError('body_too_large', `the answer ${what}; narrow it with filters or max_results`)
}

export function tooManyBytes(most: number): PceError {
  return tooLarge(`is larger than ${most / MIB} MiB`)
}

export function tooManyElements(most: number): PceError {
  return tooLarge(`has more than ${most.toLocaleString('en')} elements`)
}

export function tooDeep(): PceError {
  return tooLarge(`is nested more than ${BOUNDS.depth} levels deep`)
}

/**
 * Counts the elements and the depth of a JSON text while it arrives, before anything is made of it: 31 KB of gzip can hold 32 MB of
 * `[{},{},…`, which would become 2 GB of objects. Says nothing about whether the text is JSON; a text of another kind is not counted.
 */
export class JsonMeter {
  readonly #most: number
  #elements = 0
  #depth = 0
  #inString = false
  #escaped = false
  /** Undefined before the first character. */
  #isJson: boolean | undefined

  constructor(mostElements: number) {
    this.#most = mostElements
  }

  /** @throws {PceError} `body_too_large`, naming the bound. */
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

  /** Index of the first character that is no blank. */
  #begin(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && chunk[at]! <= 0x20) at += 1
    if (at < chunk.length) this.#isJson = chunk[at] === OPEN_ARRAY || chunk[at] === OPEN_OBJECT
    return at
  }
}
