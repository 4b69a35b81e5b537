/** What the tool that a form stands for calls it: the names of the arguments are the names of the fields (D17). */
export const REGISTER_TOOL = 'register-pce-credentials'
export const REMOVE_TOOL = 'delete-pce-credentials'
export const STATUS_TOOL = 'check-pce-credentials-status'
export const TEST_TOOL = 'check-pce-connection'

/** The field that carries the CSRF token; no tool has an argument of this name. */
export const CSRF_FIELD = '_csrf'

export interface FormField {
  name: string
  label: string
  hint: string
  kind: 'text' | 'number' | 'secret' | 'choice'
  /** Said beside the field when it is left empty. */
  missing?: string
  /** Said beside the field when what was entered is of no use, where the check has only technical words for it. */
  wrong: string
}

/** The form of register-pce-credentials, in the order people have their values. */
export const FORM_FIELDS: readonly FormField[] = [
  {
    name: 'pce_host',
    label: 'PCE host',
    hint: 'Name or address, such as pce.example.com.',
    kind: 'text',
    missing: 'Enter the host name or address of your PCE.',
    wrong: 'Enter a host name or an address, without path and user name.',
  },
  {
    name: 'pce_port',
    label: 'Port',
    hint: 'Mostly 443 or 8443.',
    kind: 'number',
    missing: 'Enter the port of your PCE.',
    wrong: 'Enter a whole number from 1 to 65535.',
  },
  {
    name: 'pce_org_id',
    label: 'Organisation ID',
    hint: 'Mostly 1.',
    kind: 'number',
    missing: 'Enter the number of your organisation.',
    wrong: 'Enter a whole number, 1 or more.',
  },
  {
    name: 'label',
    label: 'Name (optional)',
    hint: 'What you call them, such as “production”.',
    kind: 'text',
    wrong: 'Enter a short name.',
  },
  {
    name: 'api_key',
    label: 'API key',
    hint: 'The part that begins with api_.',
    kind: 'text',
    missing: 'Enter the API key.',
    wrong: 'Enter the API key as the PCE showed it.',
  },
  {
    name: 'api_secret',
    label: 'API secret',
    hint: 'The PCE shows it once, when the key is made.',
    kind: 'secret',
    missing: 'Enter the API secret.',
    wrong: 'Enter the API secret as the PCE showed it.',
  },
  {
    name: 'tls_verify',
    label: 'Certificate of the PCE',
    hint: 'Without the check anybody on the way can read your key.',
    kind: 'choice',
    wrong: 'Choose one of the two.',
  },
]
