import { quote } from '../text/escape-text.js'

/** A mark that ends a sentence, after a word that is no abbreviation, and before further words. */
const ENDED = /(?:\p{L}{4}|[\p{N})\]"'”])[.!?;]\s+\p{L}/u
const ENDED_WITHOUT_BLANK = /[。！？]\s*\p{L}/u
/** A comma, a semicolon, a colon or a dash between words. */
const JOINED = /(?:[,;:]\s+|[–—]\s*|\s-\s+)["'“(]?\p{L}/u
const WORD = /\p{L}{2,}/gu

/**
 * Returns true for a name that says something rather than naming something (D236): it ends a sentence in its middle, has
 * six words with a comma, a semicolon, a colon or a dash between them, or ten words at all. Names such as
 * `Payments API: prod` and `St. Gallen` do not.
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

/** Warns of new names that read like sentences. `names` holds them by argument; what the call does not name is absent. */
export function warnOfSentences(names: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(names).flatMap(([argument, name]) =>
    name === undefined || !readsLikeSentence(name)
      ? []
      : [
          `${argument} ${quote(name)} reads like a sentence: wherever it is shown, people may take it for a statement about the policy. A few words that name the object are better.`,
        ],
  )
}
