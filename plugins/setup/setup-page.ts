import { html } from 'ghtml'
import { clipText, escapeText } from '../../domain/text/escape-text.js'
import type { FieldErrors } from './find-field-errors.js'
import { CSRF_FIELD, FORM_FIELDS } from './form-fields.js'
import type { Notice } from './notice.js'
import { layOut, renderNotice } from './page-layout.js'
import type { ToolAnswer, Visitor } from './ports.js'
import { idOf, renderRegistrationForm } from './registration-form.js'
import { renderStatusCard, type CredentialStatus } from './status-card.js'

export interface SetupPage {
  visitor: Visitor
  /** The answer of check-pce-credentials-status. */
  status: ToolAnswer
  notice: Notice | null
  /** Of a registration that was refused. */
  errors: FieldErrors | null
  csrfToken: string
  /** Path in front of every link, where a proxy serves this server under one. */
  basePath: string
  allowInsecureTls: boolean
  /** Whether there is a login to end: a bearer token is none. */
  canLogOut: boolean
}

const LONGEST_SHOWN = 300

/** The page of /setup: whose credentials these are, what is registered, and the forms that change it. */
export function renderSetupPage(page: SetupPage): string {
  const { visitor, status, notice, errors } = page
  return layOut({
    title: errors === null ? 'Your PCE credentials' : 'Error: your PCE credentials',
    corner: page.canLogOut ? '<button class="quiet" type="submit" form="logout-form">Log out</button>' : '',
    body: html`
      <div>
        <h1>Your PCE credentials</h1>
        <p class="lead">
          Tools that you call through this server work on the PCE with your own API key. It is stored encrypted, and
          used for your calls only.
        </p>
        !${renderVisitor(visitor)}
      </div>
      !${errors === null ? '' : renderErrors(errors)} !${notice === null ? '' : renderNotice(notice)}
      !${renderStatusCard(visitor.role, status)} !${renderRegistration(page)}
    `,
    forms: renderOtherForms(page),
  })
}

/** What a provider says of a person: nobody can make a name look like another one. It still has to be encoded. */
const show = (text: string) => escapeText(clipText(text, LONGEST_SHOWN))

const renderVisitor = ({ identity, role }: Visitor) =>
  html`<p class="who">
    You are <b><bdi>${show(identity.sub)}</bdi></b> <span class="badge plain">${role ?? 'no role'}</span><br />
    <span class="hint">logged in at <bdi>${show(identity.iss)}</bdi></span>
  </p>`

/** Every field error once more, as a link to its field. */
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
      text: 'Enter all values once more: none of them comes back to this page.',
    },
    html`<ul>
      !${[...entries, ...rest].join('')}
    </ul>`,
  )
}

/** A replacement is folded away, unless it is what the person is busy with. */
function renderRegistration(page: SetupPage): string {
  const { visitor, status, errors } = page
  if (visitor.role === null) return ''
  const isReplacement = status.ok && (status.value as CredentialStatus).registered
  const form = renderRegistrationForm({
    ...page,
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
    <details !${errors === null ? '' : 'open'}>
      <summary>Replace the credentials</summary>
      !${ADVICE} !${form}
    </details>
  </section>`
}

const ADVICE = html`<p class="hint">
  Make an API key in the PCE console under your own user. This page never shows it again.
</p>`

/** They stand last, so that the registration is the first form of the page for whatever looks for one; their buttons name them. */
function renderOtherForms({ basePath, csrfToken, canLogOut, visitor }: SetupPage): string {
  const form = (name: string) =>
    html`<form id="${name}-form" method="post" action="${basePath}/setup/${name}" hidden>
      <input type="hidden" name="${CSRF_FIELD}" value="${csrfToken}" />
    </form>`
  const names = [...(visitor.role === null ? [] : ['test', 'remove']), ...(canLogOut ? ['logout'] : [])]
  return names.map(form).join('')
}
