/** PCE strings longer than this are clipped, identifiers excepted (D2). */
export const MAX_TEXT_LENGTH = 1_000

/**
 * Characters a reader cannot see but a model reads: C0 and C1 controls, zero-width and bidirectional marks, and the tag block.
 * Tab and line ends are handled apart, because they separate words.
 */
const INVISIBLE =
  // eslint-disable-next-line no-control-regex -- the point of the expression
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu

/** Keys whose values are handed back to the PCE one day, and must stay as they are. */
const IDENTIFIER = /(?:^|_)(?:hrefs?|cursor|reference|uuid)$/

/**
 * PCE text made safe to show: hidden characters removed, line breaks turned into blanks, clipped at 1,000 characters with an
 * ellipsis. Names in a PCE are written by whoever may create objects there, so they are data and never instructions.
 */
export function cleanText(text: string): string {
  const visible = text.replace(/[\t\n\r\u2028\u2029]+/g, ' ').replace(INVISIBLE, '')
  if (visible.length <= MAX_TEXT_LENGTH) return visible
  const clipped = visible.slice(0, MAX_TEXT_LENGTH - 1)
  // A cut through a surrogate pair would leave a character no JSON reader can restore.
  return `${/[\uD800-\uDBFF]$/.test(clipped) ? clipped.slice(0, -1) : clipped}…`
}

/** The key of a list of rules in one text: hrefs joined with ", ". */
const RULE_LIST = 'matched_rule'

/** A list joined with ", " stays whole, whatever its length: what is clipped is each of its entries. */
export const cleanList = (text: string): string => text.split(', ').map(cleanText).join(', ')

/** Every string inside a JSON value cleaned, except identifiers and hrefs (by the name of their property, or their form). */
export function cleanDeep<T>(value: T): T {
  return clean(value, '') as T
}

function clean(value: unknown, key: string): unknown {
  if (key === RULE_LIST && typeof value === 'string') return cleanList(value)
  if (typeof value === 'string') return IDENTIFIER.test(key) || isHref(value) ? value : cleanText(value)
  if (Array.isArray(value)) return value.map((item) => clean(item, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [cleanText(name), clean(inner, name)]))
}

function isHref(text: string): boolean {
  return /^\/(?:orgs|users)\/[\x21-\x7E]+$/.test(text)
}
