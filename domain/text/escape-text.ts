/** The most characters of a text that leaves this server (D2); our own sentences get more, since one may name several objects. */
const LONGEST_TEXT = 1_000
const LONGEST_SENTENCE = 4_000

/**
 * Characters that a model reads but a person does not see, or that reverse the text around them: controls (line ends and tabs
 * among them), format characters such as zero-width and bidirectional marks and the tag block, variation selectors and other
 * characters that no font draws, private and unassigned ones, the blank Braille pattern, halves of surrogate pairs; and the first character
 * of anything that looks like one of our own escapes.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|⟨(?=U\+[0-9A-F]{4,6}⟩)/gu
const ESCAPE = /⟨U\+([0-9A-F]{4,6})⟩/g
/** What is left of an escape, or of a surrogate pair, when a text is cut in the middle of it. */
const TORN_END = /(?:⟨(?:U(?:\+[0-9A-F]{0,6})?)?|[\uD800-\uDBFF])$/
/** Nearly all text consists of these alone and needs no further check. */
const PLAIN = /^[\x20-\x7E]*$/
const LARGEST_CODE_POINT = 0x10ffff

/** Properties whose values may be sent back to the PCE, where a truncated one would be useless. */
const IDENTIFIER = /(?:^|_)(?:hrefs?|cursor|reference|uuid)$/
/** Properties whose text is our own, whatever names it contains. */
const SENTENCE = /^(?:message|summary|hint|warnings?)$/
const HREF = /^\/(?:orgs|users)\/[\x21-\x7E]+$/

/**
 * A value made safe to leave this server; copied only where something changes. In every text and property name hidden characters
 * become visible escapes (`⟨U+202E⟩`), and long texts are clipped with an ellipsis, except identifiers (recognised by property or
 * form). Anyone who may create objects can choose names in a PCE, so names are data and their content must be visible.
 *
 * Every exit applies this exactly once: a second pass would escape the escapes.
 */
export function makeSafe<T>(value: T): T {
  return mapTexts(value, '', escapeValue, escapeText) as T
}

/** Undoes `makeSafe` on what a client sends, so that whatever was shown can be named: each escape becomes its character again. */
export function readEscapes<T>(value: T): T {
  return mapTexts(value, '', unescapeText, unescapeText) as T
}

/** A text with its hidden characters as visible escapes. Different texts stay different: `unescapeText` restores each of them. */
export function escapeText(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(HIDDEN, (character) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase()
    return `⟨U+${code.padStart(4, '0')}⟩`
  })
}

/** The text that `escapeText` shows like this. */
export function unescapeText(text: string): string {
  if (!text.includes('⟨U+')) return text
  return text.replace(ESCAPE, (escape, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code > LARGEST_CODE_POINT ? escape : String.fromCodePoint(code)
  })
}

/** Whether a text contains invisible characters. */
export function hidesCharacters(text: string): boolean {
  return escapeText(text) !== text
}

/**
 * A text clipped to `most` characters, counting its future escapes; longer ones end in an ellipsis. The result is not escaped
 * yet.
 */
export function clipText(text: string, most: number): string {
  const shown = escapeText(text)
  return shown.length <= most ? text : unescapeText(clip(shown, most))
}

/** A text without leading and trailing spaces. Plain spaces only: other white space may be all that distinguishes two names. */
export function trimBlanks(text: string): string {
  return text.replace(/^ +| +$/g, '')
}

/** A text in quotes that it cannot close itself: anyone who may create objects chooses names. */
export function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function escapeValue(text: string, key: string): string {
  const shown = escapeText(text)
  if (shown.length <= LONGEST_TEXT || IDENTIFIER.test(key) || HREF.test(text)) return shown
  if (SENTENCE.test(key)) return clip(shown, LONGEST_SENTENCE)
  const entries = shown.split(', ')
  // A list of hrefs in one text stays whole: only its entries are clipped.
  return entries.some((entry) => HREF.test(entry))
    ? entries.map((entry) => clip(entry, LONGEST_TEXT)).join(', ')
    : clip(shown, LONGEST_TEXT)
}

/** Escaped text, cut neither inside an escape nor inside a surrogate pair. */
function clip(shown: string, most: number): string {
  return shown.length <= most ? shown : `${shown.slice(0, most - 1).replace(TORN_END, '')}…`
}

/** Answers are large and hidden characters rare, so what does not change is not copied. `key` is the property a value belongs to. */
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
