import { html } from 'ghtml'
import type { Role } from '../../schemas/caller.js'
import type { ToolAnswer } from './ports.js'

/** What check-pce-credentials-status answers. */
export interface CredentialStatus {
  registered: boolean
  pce_host?: string
  pce_port?: number
  pce_org_id?: number | string
  tls_verify?: boolean
  label?: string
}

/** What is registered for this person, or why nobody can say, in the words of the refused tool. */
export function renderStatusCard(role: Role | null, status: ToolAnswer): string {
  const title = role === null ? 'No role' : 'What is registered'
  if (!status.ok) {
    const { code, message, hint } = status.error
    const reason = html`<p>${message} ${hint}</p>`
    return renderCard(title, 'bad', code, role === null ? reason + NO_ROLE : reason)
  }
  const value = status.value as CredentialStatus
  return value.registered
    ? renderCard(title, 'good', 'Registered', renderFacts(value))
    : renderCard(title, 'plain', 'Nothing yet', NOTHING_YET)
}

const NO_ROLE = html`<p>
  You are logged in, but without a role no tool runs for you, and there is nothing to register. A new role counts after
  you have logged out and in again.
</p>`

const NOTHING_YET = html`<p>Until you register a key, tools that need a PCE answer <code>no_pce_credentials</code>.</p>`

const renderCard = (title: string, kind: string, badge: string, content: string) =>
  html`<section class="card" aria-labelledby="status">
    <div class="head">
      <h2 id="status">${title}</h2>
      <span class="badge ${kind}">${badge}</span>
    </div>
    !${content}
  </section>`

/** The buttons belong to forms at the end of the page. Removing takes a second click, which needs no script either. */
const renderFacts = (value: CredentialStatus) =>
  html`<dl>!${factsOf(value).map(renderFact).join('')}</dl>
    <div class="buttons">
      <button type="submit" form="test-form">Test the connection</button>
      <details>
        <summary>Remove…</summary>
        <p>Your key is deleted at once; tools that need a PCE then no longer work for you.</p>
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
    ['API key, secret', 'stored encrypted, never shown'],
  ]
  return facts.flatMap(([name, fact]) => (fact === undefined || fact === '' ? [] : [[name, String(fact)]]))
}
