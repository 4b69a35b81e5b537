import { PceError } from '../errors.js'
import type { ActionError } from '../../schemas/pce/action-error.js'
import type { ImportResult } from '../../schemas/pce/import-result.js'
import type { Answer } from '../transport.js'

/**
 * The object that a call has made.
 *
 * @param name the text by which it is known, which no such answer is without (P13).
 * @throws {PceError} `outcome_unknown`: it exists, but the answer does not show it.
 */
export function madeBy<T extends object>(answer: Answer, what: string, name: keyof T & string): T {
  const body = bodyOr(answer, what, undefined) as T | null | undefined
  if (typeof body?.[name] === 'string') return body
  throw unreadable(answer, what)
}

/** What a call that was carried out has to say; `{}` where it answers without a body, as some releases do. */
export function saidBy(answer: Answer, what: string): Record<string, unknown> {
  const body = bodyOr(answer, what, {})
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
}

/** The objects that an action was not done to: `{errors}`, a bare list, or no body at all (P13, P32). */
export function errorsOf(answer: Answer, what: string): ActionError[] {
  const body = bodyOr(answer, what, {})
  const errors: unknown = Array.isArray(body) ? body : ((body as { errors?: unknown } | null)?.errors ?? [])
  if (!Array.isArray(errors)) throw unreadable(answer, what)
  return (errors as RawError[]).map((error) => ({
    token: error?.token ?? '',
    message: error?.message ?? '',
    hrefs: hrefsOf(error?.hrefs),
  }))
}

/** The rows of an import; no source says whether they come as a list or as an object, so either is taken (P13). */
export function importedBy(answer: Answer, what: string): ImportResult[] {
  const body = bodyOr(answer, what, [])
  return (Array.isArray(body) ? body : [body]) as ImportResult[]
}

interface RawError {
  token?: string
  message?: string
  hrefs?: unknown
}

/** Texts or references. An action was carried out before its errors are read, so that what is neither is passed by. */
function hrefsOf(given: unknown): string[] {
  if (!Array.isArray(given)) return []
  const hrefs = (given as unknown[]).map((href) =>
    typeof href === 'object' && href !== null ? (href as { href?: unknown }).href : href,
  )
  return hrefs.filter((href) => typeof href === 'string')
}

function bodyOr(answer: Answer, what: string, empty: unknown): unknown {
  try {
    return answer.json<unknown>() ?? empty
  } catch (cause) {
    throw unreadable(answer, what, cause)
  }
}

function unreadable({ status }: Answer, what: string, cause?: unknown): PceError {
  const text = `${what} was accepted (status ${status}), but its answer cannot be read. Look before repeating it.`
  return new PceError('outcome_unknown', text, { cause })
}
