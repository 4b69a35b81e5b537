/**
 * Returns the text unchanged, if the store can hold it unchanged. Lone surrogates are refused: in UTF-8, two strings
 * with different ones would become the same, so that one caller could pass for another. Throws RangeError, never with
 * the text itself.
 */
export function checkText(text: string): string {
  if (text.includes('\0') || Buffer.from(text, 'utf8').toString('utf8') !== text) {
    throw new RangeError('text with NUL or lone surrogates cannot be stored')
  }
  return text
}
