/**
 * The longest text that leaves this server, in characters (D2). Our own sentences may be longer, since one may name
 * several objects.
 */
const LONGEST_TEXT = 1_000
const LONGEST_SENTENCE = 4_000

/**
 * Characters that a model reads but a person does not see, or that reverse the text around them: control characters
 * (including line ends and tabs), format characters such as zero-width marks, bidirectional marks and the tag block,
 * variation selectors and other characters that no font draws, private-use and unassigned characters, the blank Braille
 * pattern, and unpaired surrogates. The expression also matches the first character of anything that looks like one of
 * our own escapes.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|⟨(?=U\+[0-9A-F]{4,6}⟩)/gu
const ESCAPE = /⟨U\+([0-9A-F]{4,6})⟩/g
/** The remains of an escape or a surrogate pair when a text is cut in the middle of it. */
const TORN_END = /(?:⟨(?:U(?:\+[0-9A-F]{0,6})?)?|[\uD800-\uDBFF])$/
/** Printable ASCII. Nearly all texts consist of it alone and need no further check. */
const PLAIN = /^[\x20-\x7E]*$/
const LARGEST_CODE_POINT = 0x10ffff

/** Names of properties whose values may be sent back to the PCE. A truncated value would be useless there. */
const IDENTIFIER = /(?:^|_)(?:hrefs?|cursor|reference|uuid)$/
/** Names of properties that hold our own sentences, which may quote names from the PCE. */
const SENTENCE = /^(?:message|summary|hint|warnings?)$/
const HREF = /^\/(?:orgs|users)\/[\x21-\x7E]+$/

/**
 * Makes a value safe to leave this server. In every text and property name, hidden characters become visible escapes
 * (`⟨U+202E⟩`). Long texts end in an ellipsis, except identifiers, which are recognised by their property or their
 * form. This is needed because anyone who may create objects in a PCE can choose their names: names are data, and
 * everything in them must be visible. Values that do not change are returned without copying.
 *
 * Every exit of the server must apply this exactly once: a second pass would escape the escapes.
 */
export function makeSafe<T>(value: T): T {
  return mapTexts(value, '', escapeValue, escapeText) as T
}

/**
 * Undoes `makeSafe` on the input of a client: each escape becomes its character again, so that a client can refer to
 * any name it was shown.
 */
export function readEscapes<T>(value: T): T {
  return mapTexts(value, '', unescapeText, unescapeText) as T
}

/** Characters that JSON leaves as they are, although they end a line, reverse the text around them, or are not drawn. */
const HIDDEN_IN_JSON = /[\u007F-\u009F\p{Zl}\p{Zp}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Formats a value as JSON in which hidden characters are escapes (`\u202e`), so that a terminal shows all of a line.
 * Parsing it gives the same value.
 */
export const visibleJson = (value: object): string =>
  JSON.stringify(value).replace(HIDDEN_IN_JSON, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/**
 * Replaces hidden characters by visible escapes. Different texts stay different, and `unescapeText` restores the
 * original.
 */
export function escapeText(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(HIDDEN, (character) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase()
    return `⟨U+${code.padStart(4, '0')}⟩`
  })
}

/** Restores the text from which `escapeText` made this one. */
export function unescapeText(text: string): string {
  if (!text.includes('⟨U+')) return text
  return text.replace(ESCAPE, (escape, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code > LARGEST_CODE_POINT ? escape : String.fromCodePoint(code)
  })
}

/** Returns true if the text contains invisible characters. */
export function hidesCharacters(text: string): boolean {
  return escapeText(text) !== text
}

/**
 * Clips a text so that its escaped form has at most `most` characters; a clipped text ends in an ellipsis. The result
 * is not escaped yet.
 */
export function clipText(text: string, most: number): string {
  const shown = escapeText(text)
  return shown.length <= most ? text : unescapeText(clip(shown, most))
}

/** Removes leading and trailing spaces. Other white space stays, because it may be all that distinguishes two names. */
export function trimBlanks(text: string): string {
  return text.replace(/^ +|(?<! ) +$/g, '')
}

/** The longest text that a sentence quotes whole, in characters; hrefs are shorter. */
const LONGEST_QUOTATION = 120

/**
 * Puts a text that somebody else wrote into a sentence of ours: in quotes, with the quotes inside it escaped, and
 * clipped, so that no name ends its quotation and speaks in our voice (D236).
 */
export function quote(text: string): string {
  return `"${clipText(text, LONGEST_QUOTATION).replace(/["\\]/g, '\\$&')}"`
}

/** Clips a sentence. A quotation that is cut ends there, so that what follows is ours again. */
export function clipSentence(text: string, most: number): string {
  const clipped = clipText(text, most)
  const isOpen = clipped !== text && clipped.replace(/\\./gu, '').split('"').length % 2 === 0
  return isOpen ? `${clipped}"` : clipped
}

function escapeValue(text: string, key: string): string {
  const shown = escapeText(text)
  if (shown.length <= LONGEST_TEXT || IDENTIFIER.test(key) || HREF.test(text)) return shown
  if (SENTENCE.test(key)) return clip(shown, LONGEST_SENTENCE)
  const entries = shown.split(', ')
  // In a comma-separated list that contains hrefs, only the single entries are clipped, so that the hrefs stay usable.
  return entries.some((entry) => HREF.test(entry))
    ? entries.map((entry) => clip(entry, LONGEST_TEXT)).join(', ')
    : clip(shown, LONGEST_TEXT)
}

/** Clips an escaped text, but never in the middle of an escape or a surrogate pair. */
function clip(shown: string, most: number): string {
  return shown.length <= most ? shown : `${shown.slice(0, most - 1).replace(TORN_END, '')}…`
}

/**
 * Applies the functions to every text and property name of a value; `key` is the property the value belongs to.
 * Unchanged parts are not copied, because answers are large and hidden characters are rare.
 */
function mapTexts(
  value: unknown,
  key: string,
  ofValue: (text: string, key: string) => string,
  ofName: (name: string) => string,
): unknown {
  if (typeof value === 'string') return ofValue(value, key)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => mapTexts(item, key, ofValue, ofName))
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  const names = Object.keys(value)
  let copy: [string, unknown][] | null = null
  for (let at = 0; at < names.length; at++) {
    const name = names[at]!
    const inner = (value as Record<string, unknown>)[name]
    const shown = ofName(name)
    const mapped = mapTexts(inner, name, ofValue, ofName)
    if (copy === null && (shown !== name || mapped !== inner)) copy = Object.entries(value).slice(0, at)
    copy?.push([shown, mapped])
  }
  return copy === null ? value : Object.fromEntries(copy)
}
