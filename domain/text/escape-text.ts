/**
 * Maximum number of characters of a string in data that leaves the server, and of a sentence written by this server
 * (D2). Sentences may be longer, because they may name several objects.
 */
const LONGEST_TEXT = 1_000
const LONGEST_SENTENCE = 4_000

/**
 * Matches characters that a model reads but a person does not see, or that reverse the text around them: control
 * characters (including line ends and tabs), format characters such as zero-width marks, bidirectional marks and the
 * tag block, variation selectors and other characters that no font draws, private-use and unassigned characters, the
 * blank Braille pattern, and unpaired surrogates. It also matches the first character of anything that looks like one
 * of this server's escapes.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|⟨(?=U\+[0-9A-F]{4,6}⟩)/gu
const ESCAPE = /⟨U\+([0-9A-F]{4,6})⟩/g
/** Matches an escape or surrogate pair that was cut in the middle, at the end of a clipped string. */
const TORN_END = /(?:⟨(?:U(?:\+[0-9A-F]{0,6})?)?|[\uD800-\uDBFF])$/
/** Matches a string of only printable ASCII. Nearly all strings are, and they need no further check. */
const PLAIN = /^[\x20-\x7E]*$/
/** Matches lines of only printable ASCII, as nearly all JSON for logs is. */
const PLAIN_LINES = /^[\n\x20-\x7E]*$/
const LARGEST_CODE_POINT = 0x10ffff

/**
 * Matches the names of properties whose values are never clipped. They are identifiers that clients may send back to
 * the PCE, so a clipped one would be useless.
 */
const IDENTIFIER = /(?:^|_)(?:hrefs?|cursor|reference|uuid)$/
/** The name of properties whose value is a whole CSV table (RFC 4180). The line breaks between its rows are kept. */
const TABLE = 'csv'
/** Matches the names of properties with sentences written by this server. These may quote names from the PCE. */
const SENTENCE = /^(?:message|summary|hint|warnings?)$/
const HREF = /^\/(?:orgs|users)\/[\x21-\x7E]+$/

/**
 * Makes a value safe to leave this server. In every string and property name, hidden characters become visible escapes
 * (`⟨U+202E⟩`). Long strings are clipped and end in an ellipsis, except identifiers, which are recognised by their
 * property name or their form. This is needed because anyone who may create objects in a PCE can choose their names:
 * names are data, and everything in them must be visible. Unchanged values are returned without copying.
 * This function must be applied exactly once on every path on which data leaves the server, because a second pass would
 * escape the escapes.
 */
export function makeSafe<T>(value: T): T {
  return mapTexts(value, '', escapeValue, escapeText) as T
}

/**
 * Reverses `makeSafe` in a client's input: each escape is replaced with the character for which it stands. A client can
 * thus refer to an object by its name exactly as it was shown.
 */
export function readEscapes<T>(value: T): T {
  return mapTexts(value, '', unescapeText, unescapeText) as T
}

/**
 * Matches characters that JSON does not escape although they begin a new line, reverse the text around them or are
 * invisible.
 */
const HIDDEN_IN_JSON = /[\u007F-\u009F\p{Zl}\p{Zp}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Formats a value as JSON with escapes (`\u202e`) for hidden characters, so that a terminal shows the whole text on one
 * line. Parsing the JSON returns the same value.
 */
export const visibleJson = (value: object): string => escapeJson(JSON.stringify(value))

/** Escapes hidden characters in a JSON string as `visibleJson` does. Parsing the result returns the same value. */
export const escapeJson = (json: string): string =>
  PLAIN_LINES.test(json)
    ? json
    : json.replace(HIDDEN_IN_JSON, (character) =>
        [...Array(character.length).keys()]
          .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
          .join(''),
      )

/**
 * Replaces hidden characters with visible escapes. Different strings stay different, and `unescapeText` restores the
 * original.
 */
export function escapeText(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(HIDDEN, (character) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase()
    return `⟨U+${code.padStart(4, '0')}⟩`
  })
}

/** Restores the original of a string that `escapeText` escaped. */
export function unescapeText(text: string): string {
  if (!text.includes('⟨U+')) return text
  return text.replace(ESCAPE, (escape, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code > LARGEST_CODE_POINT ? escape : String.fromCodePoint(code)
  })
}

/** Returns true if the string contains invisible characters. */
export function hidesCharacters(text: string): boolean {
  return escapeText(text) !== text
}

/**
 * Clips a string so that its escaped form has at most `most` characters. A clipped string ends in an ellipsis. The
 * result is not escaped yet.
 */
export function clipText(text: string, most: number): string {
  const shown = escapeText(text)
  return shown.length <= most ? text : unescapeText(clip(shown, most))
}

/**
 * Removes leading and trailing spaces. Other white space remains, because it may be the only difference between two
 * names.
 */
export function trimBlanks(text: string): string {
  return text.replace(/^ +|(?<! ) +$/g, '')
}

/**
 * Maximum number of characters quoted from a string in a sentence; longer strings are clipped. Hrefs are shorter than
 * this.
 */
const LONGEST_QUOTATION = 120

/**
 * Quotes a string from elsewhere, such as a name, in a sentence written by this server. The string is clipped and its
 * quotation marks are escaped, so that a name cannot end the quotation and pretend to be part of the sentence (D236).
 */
export function quote(text: string): string {
  return `"${clipText(text, LONGEST_QUOTATION).replace(/["\\]/g, '\\$&')}"`
}

/**
 * Clips a sentence. If it is clipped inside a quotation, the quotation is closed, so that later text is not read as
 * part of it.
 */
export function clipSentence(text: string, most: number): string {
  const clipped = clipText(text, most)
  const isOpen = clipped !== text && clipped.replace(/\\./gu, '').split('"').length % 2 === 0
  return isOpen ? `${clipped}"` : clipped
}

/**
 * Escapes a CSV table as a text, but keeps the line breaks between its rows. Only line breaks outside of quoted parts
 * are such breaks. A line break that somebody wrote into a name is inside a quoted part and is therefore made visible.
 * Nothing is clipped, because that would cut off a part of a rule.
 */
const escapeTable = (text: string): string =>
  text
    .split('"')
    .map((part, at) => (at % 2 === 0 ? part.split('\r\n').map(escapeText).join('\r\n') : escapeText(part)))
    .join('"')

function escapeValue(text: string, key: string): string {
  if (key === TABLE) return escapeTable(text)
  const shown = escapeText(text)
  if (shown.length <= LONGEST_TEXT || IDENTIFIER.test(key) || HREF.test(text)) return shown
  if (SENTENCE.test(key)) return clip(shown, LONGEST_SENTENCE)
  const entries = shown.split(', ')
  // In a comma-separated list with hrefs, each entry is clipped by itself, so that the hrefs remain usable.
  return entries.some((entry) => HREF.test(entry))
    ? entries.map((entry) => clip(entry, LONGEST_TEXT)).join(', ')
    : clip(shown, LONGEST_TEXT)
}

/** Clips an escaped string, but never within an escape or a surrogate pair. */
function clip(shown: string, most: number): string {
  return shown.length <= most ? shown : `${shown.slice(0, most - 1).replace(TORN_END, '')}…`
}

/**
 * Applies `ofValue` to every string and `ofName` to every property name inside a value. `key` is the name of the
 * property that has the value. Unchanged parts are not copied, because answers are large and hidden characters are
 * rare.
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
