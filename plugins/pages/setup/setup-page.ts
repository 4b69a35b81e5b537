import { html } from 'ghtml'
import { CSRF_FIELD } from '../check-request.js'
import type { Role } from '../../../schemas/caller.js'
import { type FieldErrors, FORM_FIELDS, type FormValues, type OfferedPce, USUAL_VALUES } from './form-fields.js'
import { describeAge, describeMoment } from '../layout/describe-time.js'
import { layOut, LOGOUT_BUTTON, type Notice, renderNotice } from '../layout/page-layout.js'
import { renderPerson } from '../layout/person.js'
import type { ToolAnswer, Visitor } from '../ports.js'
import { idOf, renderRegistrationForm } from './registration-form.js'

interface SetupPage {
  visitor: Visitor
  /** The answer of the tool check-pce-credentials-status, shown on the page. */
  status: ToolAnswer
  notice: Notice | null
  /** The error messages if a registration was refused. */
  errors: FieldErrors | null
  /** The submitted values that the fields of the registration form show again; null if no registration was refused. */
  entered: FormValues | null
  /** True if the form offers to store credentials that the PCE did not accept. */
  canInsist?: boolean
  /** The current time, in milliseconds since the epoch. */
  now: number
  offeredPces: readonly OfferedPce[]
  csrfToken: string
  /** The path prefix of every link, for a proxy that serves this server below a path. */
  basePath: string
  allowInsecureTls: boolean
  /** True if the person can log out. This is not possible without a login, for example with a bearer token. */
  canLogOut: boolean
}

/**
 * Renders the /setup page: who the person is, which credentials the person has registered, and the forms that change
 * them.
 */
export function renderSetupPage(page: SetupPage): string {
  const { visitor, status, notice, errors } = page
  return layOut({
    title: page.entered === null ? 'Your PCE credentials' : 'Error: your PCE credentials',
    corner: page.canLogOut ? LOGOUT_BUTTON : '',
    body: html`
      <div>
        <h1>Your PCE credentials</h1>
        <p class="lead">
          This server calls the PCE with your own API key, so the PCE sees who changed what. The key is stored encrypted
          and used for your calls only.
        </p>
        !${renderPerson(visitor)}
      </div>
      !${errors === null ? '' : renderErrors(errors)} !${notice === null ? '' : renderNotice(notice)}
      !${renderStatusCard(visitor.role, status, page.now)} !${renderRegistration(page)}
    `,
    forms: renderOtherForms(page),
  })
}

/** Renders a summary of all errors, each with a link to its field. */
function renderErrors({ fields, others }: FieldErrors): string {
  const entries = FORM_FIELDS.flatMap(({ name, label }) => {
    const error = fields.get(name)
    return error === undefined ? [] : [html`<li><a href="#${idOf(name)}">${label}: ${error}</a></li>`]
  })
  const rest = others.map((text) => html`<li>${text}</li>`)
  return renderNotice(
    {
      kind: 'bad',
      title: 'Nothing was stored',
      text: 'Correct these, and enter the API key and secret again: this page never shows them.',
    },
    html`<ul>
      !${[...entries, ...rest].join('')}
    </ul>`,
  )
}

/**
 * Renders the registration form. If credentials are already registered, the form is collapsed, unless it was just
 * submitted and refused.
 */
function renderRegistration(page: SetupPage): string {
  const { visitor, status, entered, canInsist = false } = page
  if (visitor.role === null) return ''
  const isReplacement = status.ok && (status.value as CredentialStatus).registered
  const known = isReplacement ? valuesOf(status.value as CredentialStatus) : USUAL_VALUES
  const form = renderRegistrationForm({
    ...page,
    canInsist,
    values: entered ?? known,
    action: `${page.basePath}/setup`,
    submitLabel: isReplacement ? 'Replace the credentials' : 'Store the credentials',
  })
  if (!isReplacement) {
    return html`<section class="card" aria-labelledby="register">
      <h2 id="register">Register a key</h2>
      !${ADVICE} !${form}
    </section>`
  }
  return html`<section class="card" aria-label="Replace the credentials">
    <details !${entered === null ? '' : 'open'}>
      <summary>Replace the credentials</summary>
      !${ADVICE} !${form}
    </details>
  </section>`
}

const ADVICE = html`<p class="hint">
  Create an API key for your own user in the PCE console and enter both parts of it. This page never shows them again.
</p>`

/** Returns the registered values as initial values of the form, because a new key is usually for the same PCE. */
const valuesOf = ({
  pce_host: host,
  pce_port: port,
  pce_org_id: org,
  tls_verify: tls,
  label = '',
}: CredentialStatus) => ({
  pce_host: String(host),
  pce_port: String(port),
  pce_org_id: String(org),
  tls_verify: String(tls),
  label,
})

/**
 * Renders the forms that consist only of a button: test, remove and log out. Their buttons are elsewhere on the page
 * and refer to them by id. They come last, so that a program that looks for a form finds the registration form first.
 */
function renderOtherForms({ basePath, csrfToken, canLogOut, visitor }: SetupPage): string {
  const form = (name: string) =>
    html`<form id="${name}-form" method="post" action="${basePath}/setup/${name}" hidden>
      <input type="hidden" name="${CSRF_FIELD}" value="${csrfToken}" />
    </form>`
  const names = [...(visitor.role === null ? [] : ['test', 'remove']), ...(canLogOut ? ['logout'] : [])]
  return names.map(form).join('')
}

/** The fields of the answer of check-pce-credentials-status that the page shows. */
interface CredentialStatus {
  registered: boolean
  pce_host?: string
  pce_port?: number
  pce_org_id?: number | string
  tls_verify?: boolean
  label?: string
  last_check?: { at: string; ok: boolean; message?: string }
}

/**
 * Renders the credentials that are registered for this person. If the status tool failed, renders its error instead.
 */
function renderStatusCard(role: Role | null, status: ToolAnswer, now: number): string {
  const title = role === null ? 'No role' : 'Registered credentials'
  if (!status.ok) {
    const { code, message, hint } = status.error
    const reason = html`<p>${message} ${hint}</p>`
    return renderCard(title, 'bad', code, role === null ? reason + NO_ROLE : reason)
  }
  const value = status.value as CredentialStatus
  if (!value.registered) return renderCard(title, 'plain', 'None', NOTHING_YET)
  const [kind, badge] =
    value.last_check === undefined
      ? ['plain', 'Not tried yet']
      : value.last_check.ok
        ? ['good', 'Working']
        : ['bad', 'Not working']
  return renderCard(title, kind, badge, renderFacts(value, now))
}

const NO_ROLE = html`<p>
  Without a role no tool runs for you, so there is nothing to register. A new role takes effect when you log out and in
  again.
</p>`

const NOTHING_YET = html`<p>
  Until you register a key, every tool that needs a PCE answers <code>no_pce_credentials</code>.
</p>`

const renderCard = (title: string, kind: string, badge: string, content: string) =>
  html`<section class="card" aria-labelledby="status">
    <div class="head">
      <h2 id="status">${title}</h2>
      <span class="badge ${kind}">${badge}</span>
    </div>
    !${content}
  </section>`

/**
 * Renders the registered values, and the buttons for testing and removing them. The buttons belong to forms at the end
 * of the page. Removing the credentials requires a second click, which works without a script.
 */
const renderFacts = (value: CredentialStatus, now: number) =>
  html`<dl>!${factsOf(value).map(renderFact).join('')} !${renderLastCheck(value, now)}</dl>
    <div class="buttons">
      <button type="submit" form="test-form">Test the connection</button>
      <details>
        <summary>Remove…</summary>
        <p>
          Your key is deleted from this server at once, and tools that need a PCE stop working for you. Revoke it in the
          PCE console as well.
        </p>
        <div class="buttons">
          <button class="danger" type="submit" form="remove-form">Remove my credentials</button>
        </div>
      </details>
    </div>`

const renderFact = ([name, text]: [string, string]) =>
  html`<dt>${name}</dt>
    <dd><bdi>${text}</bdi></dd>`

function factsOf(value: CredentialStatus): [string, string][] {
  const { label, pce_host: host, pce_port: port, pce_org_id: org, tls_verify: tls } = value
  const facts: [string, string | number | undefined][] = [
    ['Name', label],
    ['PCE host', host],
    ['Port', port],
    ['Organisation ID', org],
    ['Certificate', tls === undefined ? undefined : tls ? 'checked' : 'not checked'],
    ['API key', 'stored encrypted, never shown'],
  ]
  return facts.flatMap(([name, fact]) => (fact === undefined || fact === '' ? [] : [[name, String(fact)]]))
}

/** Renders the time and the result of the last attempt to use these credentials at the PCE. */
function renderLastCheck({ last_check: check }: CredentialStatus, now: number): string {
  if (check === undefined) return ''
  const { at, ok, message = 'The PCE could not be used.' } = check
  return html`<dt>Last check</dt>
    <dd>
      ${ok ? 'The PCE accepted the key.' : message}<br />
      <span class="hint"
        ><time datetime="${at}">${describeMoment(Date.parse(at))}</time>, ${describeAge(now - Date.parse(at))}</span
      >
    </dd>`
}
