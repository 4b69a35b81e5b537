import { quote } from '../text/escape-text.js'

/** When a rule ends, according to the marker `[expires: YYYY-MM-DD]` in its description (D274). */
export type Expiry =
  /** The description does not say when the rule ends. */
  | { kind: 'none' }
  /** The description contains the marker `[expires: never]`. */
  | { kind: 'never' }
  /**
   * `date` is the last day of the rule. `over` is the first instant after that day in UTC, in milliseconds since the
   * epoch.
   */
  | { kind: 'ends'; date: string; over: number }
  /** The description mentions an end, but not as a valid marker. `isMarker` is true if the mention is in brackets. */
  | { kind: 'unclear'; why: string; isMarker: boolean }

const DAY_MS = 86_400_000
/** Matches everything that may announce the end of a rule. In brackets, it counts as an attempt at a marker. */
const SIGN = /\[\s{0,9}expir|expir/giu
/** Invisible characters, which could hide a marker from the search. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu
const MARKER = /^\[\s{0,9}expires\s{0,9}:\s{0,9}(\d{4}-\d\d-\d\d|never)\s{0,9}\]/iu
/**
 * Number of characters that are searched after a word such as `expires`: for the bracket that closes an expiry marker,
 * or in free text for a year.
 */
const REACH = 60
/** Maximum number of dates that a reason lists. */
const MOST_NAMED = 3

/**
 * Reads from a rule's description when the rule ends. If there is no marker, a year near the word `expires` makes the
 * answer `unclear`, because an end that somebody wrote down must not be taken for "never".
 */
export function readExpiry(description: string | null | undefined): Expiry {
  const text = (description ?? '').normalize('NFKC').replace(INVISIBLE, '')
  const found = new Set<string>()
  let odd: string | undefined
  let prose: string | undefined
  for (const { index, 0: sign } of text.matchAll(SIGN)) {
    const near = text.slice(index, index + REACH)
    const [, said] = MARKER.exec(near) ?? []
    if (said !== undefined && (said.toLowerCase() === 'never' || startOfDay(said) !== null))
      found.add(said.toLowerCase())
    else if (sign.startsWith('[')) odd ??= untilBracket(near)
    else if (/\d{4}/u.test(near)) prose ??= near
  }
  if (odd !== undefined) return { kind: 'unclear', why: `${quote(odd.trim())} is not ${FORM}`, isMarker: true }
  if (found.size > 1) {
    const named = [...found].slice(0, MOST_NAMED).join(', ')
    return {
      kind: 'unclear',
      why: `it says several ends: ${named}${found.size > MOST_NAMED ? ' …' : ''}`,
      isMarker: true,
    }
  }
  const [only] = found
  if (only === 'never') return { kind: 'never' }
  if (only !== undefined) return { kind: 'ends', date: only, over: (startOfDay(only) ?? 0) + DAY_MS }
  return prose === undefined
    ? { kind: 'none' }
    : { kind: 'unclear', why: `${quote(prose.trim())} is prose, not ${FORM}`, isMarker: false }
}

/** The form of a marker, for messages. */
export const FORM = '[expires: YYYY-MM-DD]'

/**
 * Returns the first instant of a day in UTC, in milliseconds since the epoch; null if the string is not a calendar day.
 */
export function startOfDay(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/u.test(text)) return null
  const at = Date.parse(`${text}T00:00:00Z`)
  // Some engines read 30 February as a day in March.
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== text ? null : at
}

/**
 * Returns the description with a marker for this last day. The marker comes first, where it is visible in a narrow
 * column and survives if the description is truncated.
 */
export const markExpiry = (description: string, date: string): string => `[expires: ${date}] ${description}`.trim()

function untilBracket(near: string): string {
  const end = near.indexOf(']')
  return end === -1 ? near : near.slice(0, end + 1)
}
