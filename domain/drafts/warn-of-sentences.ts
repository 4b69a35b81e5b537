import { quote } from '../text/escape-text.js'

/**
 * Matches the end of a sentence with another word after it. A punctuation mark after a short word may belong to an
 * abbreviation and is not matched.
 */
const ENDED = /(?:\p{L}{4}|[\p{N})\]"'”])[.!?;]\s+\p{L}/u
const ENDED_WITHOUT_BLANK = /[。！？]\s*\p{L}/u
/** Matches a comma, a semicolon, a colon or a dash between words. */
const JOINED = /(?:[,;:]\s+|[–—]\s*|\s-\s+)["'“(]?\p{L}/u
const WORD = /\p{L}{2,}/gu

/**
 * Returns true for a name that reads like a statement (D236): it contains the end of a sentence, or has at least ten
 * words, or has at least six words and a comma, semicolon, colon or dash between them. Returns false for names such as
 * `Payments API: prod` and `St. Gallen`.
 */
export function readsLikeSentence(name: string): boolean {
  const words = name.match(WORD)?.length ?? 0
  return (
    ENDED_WITHOUT_BLANK.test(name) ||
    (words >= 4 && ENDED.test(name)) ||
    (words >= 6 && JOINED.test(name)) ||
    words >= 10
  )
}

/**
 * Warns of new names that read like sentences. `names` maps each argument to its new name, or to undefined if the call
 * gives no name.
 */
export function warnOfSentences(names: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(names).flatMap(([argument, name]) =>
    name === undefined || !readsLikeSentence(name)
      ? []
      : [
          `${argument} ${quote(name)} reads like a sentence: wherever it is shown, people may take it for a statement about the policy. A few words that name the object are better.`,
        ],
  )
}
