import { ToolError } from '../../schemas/errors.js'

/** Where the next page begins. */
export interface Position {
  /** Matching objects already answered. */
  offset: number
  /** Href of the last of them: found again, it beats the offset, so that a deletion in between skips nothing. */
  after: string | null
  /**
   * Where one object is larger than an answer: its href, and how many of its parts were answered. By href, because another
   * object may stand at its place by the time the cursor comes back.
   */
  within: { href: string; parts: number } | null
}

export const FIRST_PAGE: Position = { offset: 0, after: null, within: null }

/** No PCE holds more; a larger offset never came from us. */
const MAX_OFFSET = 1_000_000

/**
 * An opaque cursor. A digest ties it to the tool and the filters it was made for, so that a cursor of another question
 * cannot silently skip objects of this one, and an edited one is refused.
 */
export async function encodeCursor(tool: string, filters: object, position: Position): Promise<string> {
  const { offset, after, within } = position
  const body = [offset, after, within?.href ?? null, within?.parts ?? 0]
  return Buffer.from(JSON.stringify([...body, await digest(tool, filters, body)])).toString('base64url')
}

/** The position a cursor stands for; the first page without one. Throws invalid_argument for anything but our own cursor. */
export async function decodeCursor(tool: string, filters: object, cursor: string | undefined): Promise<Position> {
  if (cursor === undefined) return FIRST_PAGE
  const [offset, after, href, parts, seal] = parse(cursor)
  const wellFormed = isCount(offset) && isCount(parts) && isHrefOrNull(after) && isHrefOrNull(href)
  if (!wellFormed || seal !== (await digest(tool, filters, [offset, after, href, parts]))) {
    throw new ToolError(
      'invalid_argument',
      'cursor was not made by this tool for these filters.',
      { argument: 'cursor' },
      { hint: 'Repeat the call without cursor, or with the filters the cursor came with.' },
    )
  }
  return { offset, after, within: href === null ? null : { href, parts } }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_OFFSET
}

function isHrefOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function parse(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

/** First 16 hex digits of SHA-256; the order of the filters' properties does not matter, absent ones are no filter. */
async function digest(tool: string, filters: object, body: unknown[]): Promise<string> {
  const sorted = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const bytes = new TextEncoder().encode(JSON.stringify([tool, sorted, body]))
  return Buffer.from(await crypto.subtle.digest('SHA-256', bytes))
    .toString('hex')
    .slice(0, 16)
}
