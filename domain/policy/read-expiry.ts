import { quote } from '../text/escape-text.js'

/** The end of a rule, as its description says it by the written convention `[expires: YYYY-MM-DD]` (D274). */
export type Expiry =
  /** The description says nothing of an end. */
  | { kind: 'none' }
  /** The description says `[expires: never]`. */
  | { kind: 'never' }
  /** `date` is the last day of the rule, and `over` the first instant after it in UTC, in milliseconds. */
  | { kind: 'ends'; date: string; over: number }
  /** The description says something of an end that is not the convention. `isMarker` is true if it is in brackets. */
  | { kind: 'unclear'; why: string; isMarker: boolean }

const DAY_MS = 86_400_000
/** Finds everything that may be about an end. Text in brackets that begins like this is meant as a marker. */
const SIGN = /\[\s{0,9}expir|expir/giu
/** Characters that nobody sees, and that would hide a marker from the search. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu
const MARKER = /^\[\s{0,9}expires\s{0,9}:\s{0,9}(\d{4}-\d\d-\d\d|never)\s{0,9}\]/iu
/** Number of characters after the beginning of a sign in which a marker has to end, or in which prose names a day. */
const REACH = 60
/** Maximum number of days that a reason lists. */
const MOST_NAMED = 3

/**
 * Reads the end of a rule from its description. Prose that names a year near the word `expires` is unclear, too, unless
 * there is a marker: an end that somebody wrote must not read as "never".
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

/** Returns the first instant of a day in UTC, in milliseconds; null if the text is not a day of the calendar. */
export function startOfDay(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/u.test(text)) return null
  const at = Date.parse(`${text}T00:00:00Z`)
  // Some engines take 30 February for a day in March.
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== text ? null : at
}

/**
 * Returns the description with the marker of this last day. The marker is in front, where a narrow column shows it and
 * where it is kept if a text is cut at its end.
 */
export const markExpiry = (description: string, date: string): string => `[expires: ${date}] ${description}`.trim()

function untilBracket(near: string): string {
  const end = near.indexOf(']')
  return end === -1 ? near : near.slice(0, end + 1)
}
