/**
 * Returns the string if the store can hold it unchanged; otherwise, throws a RangeError that never contains the string.
 * Lone surrogates are not permitted: two strings that differ only in lone surrogates would be equal in UTF-8, so one
 * caller could pass for another.
 */
export function checkText(text: string): string {
  if (text.includes('\0') || Buffer.from(text, 'utf8').toString('utf8') !== text) {
    throw new RangeError('text with NUL or lone surrogates cannot be stored')
  }
  return text
}

/**
 * Returns the smallest string, in byte order, that follows all strings beginning with `prefix`. The prefix is ASCII.
 */
export const endOf = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
