import type { PceApiErrorItem } from './errors.js'

const LONGEST_MESSAGE = 1000
const LONGEST_TOKEN = 100
const MOST_ITEMS = 20

/**
 * The error items of a PCE answer (P29): `[{token, message}]` as a rule; older and proxy-level errors are `[{error}]`, one object,
 * `{errors: [...]}`, HTML or nothing. Unusable bodies give no items. Texts are clipped: they come from outside.
 */
export function readApiErrors(body: string): PceApiErrorItem[] {
  const start = body.trimStart()[0]
  if (start !== '[' && start !== '{') return []
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return []
  }
  const nested = isRecord(parsed) && Array.isArray(parsed.errors) ? (parsed.errors as unknown[]) : [parsed]
  const items = Array.isArray(parsed) ? (parsed as unknown[]) : nested
  return items.slice(0, MOST_ITEMS).flatMap(readItem)
}

function readItem(item: unknown): PceApiErrorItem[] {
  if (typeof item === 'string') return [{ token: '', message: clip(item, LONGEST_MESSAGE) }]
  if (!isRecord(item)) return []
  const token = typeof item.token === 'string' ? clip(item.token, LONGEST_TOKEN) : ''
  const text = [item.message, item.error].find((value) => typeof value === 'string')
  const message = typeof text === 'string' ? clip(text, LONGEST_MESSAGE) : ''
  return token === '' && message === '' ? [] : [{ token, message }]
}

/** `406 Not Acceptable: token: message; token: message`; the status alone where the PCE said nothing more. */
export function describeApiErrors(status: number, statusText: string, errors: readonly PceApiErrorItem[]): string {
  const texts = errors.map(({ token, message }) => [token, message].filter(Boolean).join(': '))
  const head = `${status} ${clip(statusText, LONGEST_TOKEN)}`.trim()
  return clip([head, texts.join('; ')].filter(Boolean).join(': '), 2 * LONGEST_MESSAGE)
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
