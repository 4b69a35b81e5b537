/**
 * Returns the text if the store can hold it without a change. Otherwise throws a RangeError that never contains the
 * text. Lone surrogates are not permitted: two strings that differ only in lone surrogates would be equal in UTF-8, so
 * that one caller could pass for another.
 */
export function checkText(text: string): string {
  if (text.includes('\0') || Buffer.from(text, 'utf8').toString('utf8') !== text) {
    throw new RangeError('text with NUL or lone surrogates cannot be stored')
  }
  return text
}

/** Returns the first text, in the order of bytes, after all texts that begin with `prefix`, which is ASCII. */
export const endOf = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
