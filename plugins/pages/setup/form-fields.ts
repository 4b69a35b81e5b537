import type { ErrorDetails } from '../../../schemas/errors.js'
import { CSRF_FIELD } from '../check-request.js'

/** The tools that the forms call. The fields of a form have the same names as the tool's arguments (D17). */
export const REGISTER_TOOL = 'register-pce-credentials'
export const REMOVE_TOOL = 'delete-pce-credentials'
export const STATUS_TOOL = 'check-pce-credentials-status'
export const TEST_TOOL = 'check-pce-connection'

export interface FormField {
  name: string
  label: string
  hint: string
  /**
   * The type of the input. `tick` is a checkbox, shown only after the PCE has refused new credentials, with which the
   * person can have them stored all the same.
   */
  kind: 'text' | 'number' | 'secret' | 'choice' | 'tick'
  /** The part of the form to which the field belongs. */
  part: 'pce' | 'key'
  /** True if the page may prefill the field, and may show the entered value again after an error (D110). */
  isKept?: boolean
  /** The error message that is shown if the person leaves the field empty. */
  missing?: string
  /** The error message for an invalid value. It replaces technical messages of the schema check. */
  wrong: string
}

/** The fields of the registration form, in the order in which people usually have the values at hand. */
export const FORM_FIELDS: readonly FormField[] = [
  {
    name: 'pce_host',
    label: 'PCE host',
    hint: 'Host name or IP address, such as pce.example.com.',
    kind: 'text',
    part: 'pce',
    isKept: true,
    missing: 'Enter the host name or address of your PCE.',
    wrong: 'Enter a host name or address, without a path or user name.',
  },
  {
    name: 'pce_port',
    label: 'Port',
    hint: 'Usually 443 or 8443.',
    kind: 'number',
    part: 'pce',
    isKept: true,
    missing: 'Enter the port of your PCE.',
    wrong: 'Enter a whole number from 1 to 65535.',
  },
  {
    name: 'pce_org_id',
    label: 'Organisation ID',
    hint: 'Usually 1.',
    kind: 'number',
    part: 'pce',
    isKept: true,
    missing: 'Enter the ID of your organisation.',
    wrong: 'Enter a whole number, 1 or more.',
  },
  {
    name: 'tls_verify',
    label: 'Certificate check',
    hint: 'Without it, anyone on the network path can read your key.',
    kind: 'choice',
    part: 'pce',
    isKept: true,
    wrong: 'Choose one of the two options.',
  },
  {
    name: 'api_key',
    label: 'API key',
    hint: 'Begins with api_.',
    kind: 'text',
    part: 'key',
    missing: 'Enter the API key.',
    wrong: 'Enter the API key as the PCE showed it.',
  },
  {
    name: 'api_secret',
    label: 'API secret',
    hint: 'The PCE shows it only once, when the key is created.',
    kind: 'secret',
    part: 'key',
    missing: 'Enter the API secret.',
    wrong: 'Enter the API secret as the PCE showed it.',
  },
  {
    name: 'label',
    label: 'Name (optional)',
    hint: 'For your own use, such as “production”.',
    kind: 'text',
    part: 'key',
    isKept: true,
    wrong: 'Enter a short name.',
  },
  {
    name: 'replace_anyway',
    label: 'Replace the registered key all the same',
    hint: 'Your tools will fail until the PCE accepts the new one.',
    kind: 'tick',
    part: 'key',
    wrong: 'Tick the box or leave it.',
  },
]

/** The contents of the fields that may be shown again, by name. */
export type FormValues = Readonly<Record<string, string>>

/** The initial values for a first registration, which are right for almost every PCE. */
export const USUAL_VALUES: FormValues = { pce_port: '443', pce_org_id: '1' }

const WHOLE_NUMBER = /^(0|[1-9]\d{0,14})$/
const KINDS = new Map(FORM_FIELDS.map(({ name, kind }) => [name, kind]))

/**
 * Converts the fields of the form to the arguments of register-pce-credentials. Blanks around a value are removed,
 * because people often paste them by mistake, and an empty field becomes an absent argument. A malformed number or
 * choice is passed on as a string, and a repeated field as a list, so that the validation of the tool's arguments
 * refuses it.
 */
export function readForm(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const args: Record<string, unknown> = {}
  for (const [name, sent] of Object.entries(fields)) {
    const value = typeof sent === 'string' ? readValue(name, sent.trim()) : sent
    // A program can send a field named __proto__. It must become an ordinary property, which the tool then refuses as
    // unknown.
    if (name !== CSRF_FIELD && value !== '') Object.defineProperty(args, name, { value, enumerable: true })
  }
  return args
}

function readValue(name: string, text: string): unknown {
  const kind = KINDS.get(name)
  if (kind === 'number' && WHOLE_NUMBER.test(text)) return Number(text)
  if ((kind === 'choice' || kind === 'tick') && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** A PCE that the operator permits users to register. */
export interface OfferedPce {
  host: string
  /** The only port that is permitted for this host; null means any port. */
  port: number | null
}

/** Returns the name of a PCE in the drop-down list, which is both its label and its value. */
export const nameOfPce = ({ host, port }: OfferedPce): string =>
  port === null ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`

/**
 * Adds the port of the selected PCE to the arguments, so that users need not enter a port that is in the operator's
 * list.
 */
export function fillInPort(
  args: Readonly<Record<string, unknown>>,
  offered: readonly OfferedPce[],
): Record<string, unknown> {
  const chosen = offered.find((pce) => pce.port !== null && nameOfPce(pce) === args.pce_host)
  return chosen === undefined ? { ...args } : { ...args, pce_host: chosen.host, pce_port: chosen.port }
}

/**
 * Maximum length of a value that is shown again. It is the length of the longest host name (RFC 1035, 2.3.4); valid
 * values of other fields are shorter.
 */
const LONGEST_KEPT = 253
/** Matches a string that may be an API key, a secret that was pasted into the wrong field, or a URL with a password. */
const LIKE_A_SECRET = /api_|[0-9a-z]{32}|@/i

/**
 * Returns the values of a refused form that are shown again: those of fields with `isKept`, so never a key. A value
 * that looks like a secret is left out too, because a key may have been entered in the wrong field.
 */
export function keepValues(fields: Readonly<Record<string, unknown>>): FormValues {
  const entered = ({ name }: FormField) => (typeof fields[name] === 'string' ? fields[name].trim() : '')
  const secrets = FORM_FIELDS.filter(({ name }) => name === 'api_key' || name === 'api_secret').map(entered)
  const isSafe = (value: string) =>
    value.length <= LONGEST_KEPT &&
    !LIKE_A_SECRET.test(value) &&
    !secrets.some((secret) => secret.length >= 3 && value.includes(secret))
  return Object.fromEntries(
    FORM_FIELDS.flatMap((field) => {
      const value = entered(field)
      return field.isKept === true && isSafe(value) ? [[field.name, value]] : []
    }),
  )
}

export interface FieldErrors {
  /** The error messages, by the name of the form field. */
  fields: ReadonlyMap<string, string>
  /** The error messages that belong to no field of the form. */
  others: readonly string[]
}

/** Matches technical messages of the schema check. They are replaced by a sentence about what to enter. */
const TECHNICAL = /^(expected|required)/

/**
 * Assigns the problems of a refused registration to the fields of the form. `sent` contains the arguments of the call.
 * Their values are never shown, even if a message quotes one (D17).
 */
export function findFieldErrors(details: ErrorDetails, sent: Readonly<Record<string, unknown>>): FieldErrors {
  const fields = new Map<string, string>()
  const others: string[] = []
  for (const { path, message } of problemsOf(details)) {
    const field = FORM_FIELDS.find(({ name }) => path === `/${name}`)
    if (field === undefined) others.push('The form contains an unexpected field.')
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

/**
 * Replaces values of the form that occur in a string with `…`. Values of one or two characters are not replaced,
 * because they occur in ordinary words.
 */
export function withoutValues(text: string, sent: Readonly<Record<string, unknown>>): string {
  const values = Object.values(sent).filter((value) => typeof value === 'string' && value.length >= 3) as string[]
  return values.sort((a, b) => b.length - a.length).reduce((rest, value) => rest.replaceAll(value, '…'), text)
}

function asSentence(text: string): string {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
