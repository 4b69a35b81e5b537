import fc from 'fast-check'

const SURROGATES = { first: 0xd800, count: 0x800 }
const HIGHEST = 0x10ffff

/**
 * Every character of Unicode, as a `unit` of fast-check's strings. Its own unit `binary` is the same, but makes a table of a million
 * entries first, which takes more than a second.
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc.integer({ min: 0, max: HIGHEST - SURROGATES.count }).map(
  (at) => String.fromCodePoint(at < SURROGATES.first ? at : at + SURROGATES.count),
  (text) => {
    const [code, ...more] = typeof text === 'string' ? [...text].map((one) => one.codePointAt(0)!) : []
    const isLone = code !== undefined && code >= SURROGATES.first && code < SURROGATES.first + SURROGATES.count
    if (code === undefined || more.length > 0 || isLone) throw new Error('not one character')
    return code < SURROGATES.first ? code : code - SURROGATES.count
  },
)
