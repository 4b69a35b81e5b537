/**
 * Returns the text as it is, when the store can hold it unchanged. Two strings with different lone surrogates would become one and
 * the same in UTF-8, so that one caller could pass for another. Throws RangeError, never with the text.
 */
export function checkText(text: string): string {
  if (text.includes('\0') || Buffer.from(text, 'utf8').toString('utf8') !== text) {
    throw new RangeError('text with NUL or lone surrogates cannot be stored')
  }
  return text
}
