import type { ErrorDetails } from '../../schemas/errors.js'
import { FORM_FIELDS } from './form-fields.js'

export interface FieldErrors {
  /** In words, by the name of the field. */
  fields: ReadonlyMap<string, string>
  /** What belongs to no field of the form. */
  others: readonly string[]
}

/** What the check of a schema says of a value; a person wants to hear what to enter instead. */
const TECHNICAL = /^(expected|required)/

/**
 * The problems of a refused registration, each beside the field it is about. `sent` are the arguments of the call: none of their
 * values is said again, whatever a message quotes (D17).
 */
export function findFieldErrors(details: ErrorDetails, sent: Readonly<Record<string, unknown>>): FieldErrors {
  const fields = new Map<string, string>()
  const others: string[] = []
  for (const { path, message } of problemsOf(details)) {
    const field = FORM_FIELDS.find(({ name }) => path === `/${name}`)
    if (field === undefined) others.push('The form holds something that nobody asked for.')
    else if (!fields.has(field.name)) fields.set(field.name, inWords(field, message, sent))
  }
  return { fields, others: [...new Set(others)] }
}

function problemsOf(details: ErrorDetails): { path: string; message: string }[] {
  const { problems } = details
  return Array.isArray(problems) ? (problems as { path: string; message: string }[]) : []
}

function inWords(
  field: (typeof FORM_FIELDS)[number],
  message: string,
  sent: Readonly<Record<string, unknown>>,
): string {
  if (sent[field.name] === undefined) return field.missing ?? field.wrong
  return TECHNICAL.test(message) ? field.wrong : asSentence(withoutValues(message, sent))
}

/** Replaces every value of the form that is long enough to be told from an ordinary word. */
export function withoutValues(text: string, sent: Readonly<Record<string, unknown>>): string {
  const values = Object.values(sent).filter((value) => typeof value === 'string' && value.length >= 3) as string[]
  return values.sort((a, b) => b.length - a.length).reduce((rest, value) => rest.replaceAll(value, '…'), text)
}

function asSentence(text: string): string {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
