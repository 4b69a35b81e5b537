import { html } from 'ghtml'
import { CSRF_FIELD, type FieldErrors, FORM_FIELDS, type FormField } from './form-fields.js'

export interface RegistrationForm {
  action: string
  csrfToken: string
  errors: FieldErrors | null
  /** Whether the operator lets users go without the check of the PCE's certificate. */
  allowInsecureTls: boolean
  submitLabel: string
}

const WIDTHS: Record<string, string> = { pce_host: 'most', pce_port: 'least', pce_org_id: 'half', label: 'half' }
/** Password managers must neither fill a login of their own into these fields nor keep what is entered. */
const NOT_A_LOGIN = 'data-1p-ignore data-bwignore data-lpignore="true" data-form-type="other"'

/** The form that registers or replaces. Its fields are always empty: no value ever comes back from the server. */
export function renderRegistrationForm(form: RegistrationForm): string {
  const fields = FORM_FIELDS.map((field) => {
    const error = form.errors?.fields.get(field.name)
    return field.kind === 'choice' ? renderChoice(field, form.allowInsecureTls, error) : renderField(field, error)
  })
  return html`<form method="post" action="${form.action}" autocomplete="off">
    <input type="hidden" name="${CSRF_FIELD}" value="${form.csrfToken}" />
    <div class="fields">!${fields.join('')}</div>
    <div class="buttons"><button class="primary" type="submit">${form.submitLabel}</button></div>
  </form>`
}

function renderField(field: FormField, error: string | undefined): string {
  const { name, kind, missing } = field
  const id = idOf(name)
  return renderFrame(
    field,
    error,
    html`<input
      id="${id}"
      name="${name}"
      type="${kind === 'secret' ? 'password' : 'text'}"
      autocomplete="${kind === 'secret' ? 'new-password' : 'off'}"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      !${kind === 'number' ? 'inputmode="numeric" pattern="[0-9]{1,10}" title="Digits only"' : ''}
      !${name === 'api_key' || kind === 'secret' ? NOT_A_LOGIN : ''}
      !${missing === undefined ? '' : 'required'}
      !${describedBy(name, error)}
    />`,
  )
}

/** Where the operator allows no choice, none is offered. */
function renderChoice(field: FormField, isOffered: boolean, error: string | undefined): string {
  const { name } = field
  if (!isOffered && error === undefined) return html`<input type="hidden" name="${name}" value="true" />`
  return renderFrame(
    field,
    error,
    html`<select id="${idOf(name)}" name="${name}" !${describedBy(name, error)}>
      <option value="true" selected>Check it (recommended)</option>
      !${isOffered ? '<option value="false">Do not check it</option>' : ''}
    </select>`,
  )
}

function renderFrame({ name, label, hint }: FormField, error: string | undefined, control: string): string {
  return html`<div class="field ${WIDTHS[name] ?? ''} ${error === undefined ? '' : 'invalid'}">
    <label for="${idOf(name)}">${label}</label>
    <p class="hint" id="${idOf(name)}-hint">${hint}</p>
    !${error === undefined ? '' : html`<p class="error" id="${idOf(name)}-error">${error}</p>`} !${control}
  </div>`
}

function describedBy(name: string, error: string | undefined): string {
  const id = idOf(name)
  return error === undefined
    ? `aria-describedby="${id}-hint"`
    : `aria-invalid="true" aria-describedby="${id}-error ${id}-hint"`
}

/** The id of a field's control, for labels and for the links of the error summary. */
export const idOf = (name: string) => name.replaceAll('_', '-')
