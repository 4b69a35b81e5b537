import { CSRF_FIELD, FORM_FIELDS } from './form-fields.js'

const WHOLE_NUMBER = /^(0|[1-9]\d{0,14})$/
const KINDS = new Map(FORM_FIELDS.map(({ name, kind }) => [name, kind]))

/**
 * The arguments of register-pce-credentials from the fields of the form. Blanks around a value were pasted by mistake; an empty field
 * is an absent argument. A number or a choice that is none stays text, and a field given twice a list, so that the check of the
 * arguments, which every call goes through, refuses it.
 */
export function readForm(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const args: Record<string, unknown> = {}
  for (const [name, sent] of Object.entries(fields)) {
    const value = typeof sent === 'string' ? readValue(name, sent.trim()) : sent
    // Anybody may name a field __proto__; it must become a name that no tool knows, and nothing else.
    if (name !== CSRF_FIELD && value !== '') Object.defineProperty(args, name, { value, enumerable: true })
  }
  return args
}

function readValue(name: string, text: string): unknown {
  const kind = KINDS.get(name)
  if (kind === 'number' && WHOLE_NUMBER.test(text)) return Number(text)
  if (kind === 'choice' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
