import { clipText, escapeText, unescapeText } from '../../../domain/text/escape-text.js'

/**
 * Prepares a stored text for display. In stored texts, hidden characters are already replaced by visible escapes, which
 * are kept; any hidden characters that remain are escaped here. The result must still be HTML-encoded.
 */
export const showStored = (text: string, most = Infinity): string => {
  const bare = unescapeText(text)
  return escapeText(most === Infinity ? bare : clipText(bare, most))
}
