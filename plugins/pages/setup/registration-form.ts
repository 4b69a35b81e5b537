import { html } from 'ghtml'
import { CSRF_FIELD } from '../check-request.js'
import {
  type FieldErrors,
  FORM_FIELDS,
  type FormField,
  type FormValues,
  nameOfPce,
  type OfferedPce,
} from './form-fields.js'

export interface RegistrationForm {
  action: string
  csrfToken: string
  errors: FieldErrors | null
  /** The initial values of the fields, by name. They never contain a key (D110). */
  values: FormValues
  /** The PCEs to choose from; empty if any host may be entered. */
  offeredPces: readonly OfferedPce[]
  /** True if the operator permits users to turn off the verification of the PCE's certificate. */
  allowInsecureTls: boolean
  /** True if the form offers to store credentials that the PCE does not accept. */
  canInsist: boolean
  submitLabel: string
}

const WIDTHS: Record<string, string> = { pce_host: 'large', pce_port: 'small', pce_org_id: 'small' }
/** The HTML attributes with which password managers neither fill in another login nor store the entered values. */
const NOT_A_LOGIN = 'data-1p-ignore data-bwignore data-lpignore="true" data-form-type="other"'
const PARTS = { pce: 'Your PCE', key: 'Your API key' }

/** Renders the form that registers or replaces credentials. Keys are never sent back to the browser. */
export function renderRegistrationForm(form: RegistrationForm): string {
  const parts = Object.entries(PARTS).map(([part, title]) => {
    const fields = FORM_FIELDS.filter((field) => field.part === part).map((field) => renderControl(field, form))
    return html`<fieldset>
      <legend>${title}</legend>
      <div class="fields">!${fields.join('')}</div>
    </fieldset>`
  })
  return html`<form method="post" action="${form.action}" autocomplete="off">
    <input type="hidden" name="${CSRF_FIELD}" value="${form.csrfToken}" />
    !${parts.join('')}
    <div class="buttons"><button class="primary" type="submit">${form.submitLabel}</button></div>
  </form>`
}

function renderControl(field: FormField, form: RegistrationForm): string {
  const { name, kind } = field
  const error = form.errors?.fields.get(name)
  if (kind === 'tick') return form.canInsist || error !== undefined ? renderTick(field, error) : ''
  if (name === 'pce_host' && form.offeredPces.length > 0) return renderHosts(field, form, error)
  if (name === 'pce_port' && form.offeredPces.length > 0) return renderPort(field, form, error)
  if (kind === 'choice') return renderCertificateCheck(field, form, error)
  return renderField(field, form.values[name], error)
}

function renderField(field: FormField, value: string | undefined, error: string | undefined): string {
  const { name, kind, missing } = field
  const id = idOf(name)
  return renderFrame(
    field,
    error,
    html`<input
      id="${id}"
      name="${name}"
      type="${kind === 'secret' ? 'password' : 'text'}"
      !${value === undefined || value === '' ? '' : html`value="${value}"`}
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

/** Renders the hosts of the operator's list as a drop-down list, so that nobody has to remember or guess them. */
function renderHosts(field: FormField, { offeredPces, values }: RegistrationForm, error: string | undefined): string {
  const options = [...new Map(offeredPces.map((pce) => [nameOfPce(pce), pce])).values()]
  const { pce_host: host = '', pce_port: port } = values
  const isAt = (pce: OfferedPce) => nameOfPce(pce) === host || (pce.host === host && String(pce.port) === port)
  const selected = options.find(isAt) ?? options.find((pce) => pce.host === host && pce.port === null)
  const mustChoose = selected === undefined && options.length > 1
  const rendered = options.map(
    (pce) => html`<option value="${nameOfPce(pce)}" !${pce === selected ? 'selected' : ''}>${nameOfPce(pce)}</option>`,
  )
  return renderFrame(
    { ...field, hint: 'Allowed by your operator.' },
    error,
    html`<select id="${idOf(field.name)}" name="${field.name}" required !${describedBy(field.name, error)}>
      !${mustChoose ? '<option value="" selected>Choose…</option>' : ''} !${rendered.join('')}
    </select>`,
  )
}

/**
 * Renders the port field. It is left out if every entry of the operator's list has a port and there is no error about
 * the field.
 */
function renderPort(field: FormField, { offeredPces, values }: RegistrationForm, error: string | undefined): string {
  const withPort = offeredPces.filter(({ port }) => port !== null)
  if (withPort.length === 0) return renderField(field, values.pce_port, error)
  if (withPort.length === offeredPces.length && error === undefined) return ''
  const { missing: _missing, ...rest } = field
  return renderField({ ...rest, hint: 'Where the list has none.' }, values.pce_port, error)
}

/**
 * Renders the choice of whether the PCE's certificate is verified. If the operator permits no choice, renders a hidden
 * field that switches the verification on.
 */
function renderCertificateCheck(
  field: FormField,
  { allowInsecureTls: isOffered, values }: RegistrationForm,
  error: string | undefined,
): string {
  const { name } = field
  if (!isOffered && error === undefined) return html`<input type="hidden" name="${name}" value="true" />`
  const isOff = isOffered && values[name] === 'false'
  return renderFrame(
    field,
    error,
    html`<select id="${idOf(name)}" name="${name}" !${describedBy(name, error)}>
      <option value="true" !${isOff ? '' : 'selected'}>On (recommended)</option>
      !${isOffered ? html`<option value="false" !${isOff ? 'selected' : ''}>Off</option>` : ''}
    </select>`,
  )
}

function renderTick({ name, label, hint }: FormField, error: string | undefined): string {
  const id = idOf(name)
  return html`<div class="field tick ${error === undefined ? '' : 'invalid'}">
    !${renderError(name, error)}
    <input id="${id}" name="${name}" type="checkbox" value="true" !${describedBy(name, error)} />
    <label for="${id}">${label}</label>
    <p class="hint" id="${id}-hint">${hint}</p>
  </div>`
}

function renderFrame({ name, label, hint }: FormField, error: string | undefined, control: string): string {
  return html`<div class="field ${WIDTHS[name] ?? ''} ${error === undefined ? '' : 'invalid'}">
    <label for="${idOf(name)}">${label}</label>
    <p class="hint" id="${idOf(name)}-hint">${hint}</p>
    !${renderError(name, error)} !${control}
  </div>`
}

const renderError = (name: string, error: string | undefined) =>
  error === undefined ? '' : html`<p class="error" id="${idOf(name)}-error">${error}</p>`

function describedBy(name: string, error: string | undefined): string {
  const id = idOf(name)
  return error === undefined
    ? `aria-describedby="${id}-hint"`
    : `aria-invalid="true" aria-describedby="${id}-error ${id}-hint"`
}

/** Returns the id of a field's control, for labels and for the links of the error summary. */
export const idOf = (name: string) => name.replaceAll('_', '-')
