import { html } from 'ghtml'
import type { ApprovalPart, AskedApproval } from '../../../schemas/approvals.js'
import type { Identity } from '../../../schemas/caller.js'
import type { PersonMethod } from '../../../schemas/config.js'
import { titleOf } from '../../../tools/define.js'
import { describeAge, describeWait } from '../layout/describe-time.js'
import { layOut, LOGOUT_BUTTON, type Notice, renderNotice } from '../layout/page-layout.js'
import { renderPerson } from '../layout/person.js'
import { askerOf, hasApproved, type Reader, renderLogout, renderTime, renderWho } from './approval-page.js'
import { renderRevoke } from './render-revoke.js'
import { renderLead } from './render-sentence.js'
import { showStored } from './show-stored.js'

interface WaitingPage extends Reader {
  method: PersonMethod
  total: number
  approvals: readonly { approval: AskedApproval; part: ApprovalPart; mayRevoke: boolean }[]
  /** A message about what this person has just done. */
  notice: Notice | null
}

const LONGEST_SUMMARY = 300

/**
 * Renders two lists of approval requests: those that wait for a decision of this person, and this person's own, which
 * wait for a decision of other people.
 */
export function renderWaitingPage(page: WaitingPage): string {
  const { total, approvals, method } = page
  const open = approvals.filter(({ approval }) => approval.state === 'pending')
  const isWatched = ({ part, approval }: (typeof open)[number]) =>
    part === 'watching' || hasApproved(approval.first, page.identity)
  const theirs = open.filter((row) => !isWatched(row))
  const watched = open.filter(isWatched)
  const yours = watched.some(({ part }) => part !== 'watching')
    ? 'Yours, or approved by you, waiting for somebody else'
    : 'Yours, waiting for somebody else'
  const left = total - approvals.length
  return layOut({
    title: 'Calls to approve',
    corner: LOGOUT_BUTTON,
    isWide: true,
    body: html`
      <div>
        <h1>Calls to approve</h1>
        <p class="lead">
          Calls of tools that wait for a person before they change anything.
          ${method === 'two-person' ? 'An admin decides, and never about a call of their own.' : 'The person who asked decides, or an admin.'}
        </p>
        !${renderPerson(page)}
      </div>
      !${page.notice === null ? '' : renderNotice(page.notice)}
      !${renderCard('waiting', 'Waiting for you', theirs, page, 'Nothing waits for you.')}
      !${watched.length === 0 ? '' : renderCard('yours', yours, watched, page, '')}
      !${left > 0 ? html`<p class="foot">${left} more ${left === 1 ? 'waits' : 'wait'}: the oldest of each person are listed first, and the others follow as these are decided.</p>` : ''}
      !${page.role === 'admin' ? html`<p class="foot"><a href="${page.basePath}/approve/all">All open requests of everybody</a>: also what was approved and not used yet.</p>` : ''}
    `,
    forms: renderLogout(page),
  })
}

function renderCard(
  id: string,
  title: string,
  rows: WaitingPage['approvals'],
  page: WaitingPage,
  none: string,
): string {
  return html`<section class="card" aria-labelledby="${id}">
    <h2 id="${id}">${title} !${rows.length === 0 ? '' : html`<span class="count">${rows.length}</span>`}</h2>
    !${
      rows.length === 0
        ? html`<p>${none}</p>`
        : html`<ul class="rows">
            !${rows.map(({ approval, mayRevoke }) => renderRow(approval, page, mayRevoke ? renderRevoke(approval, page, { to: 'list' }) : '')).join('')}
          </ul>`
    }
  </section>`
}

/** Renders a request in a list. `end` is HTML that is appended. */
export function renderRow(approval: AskedApproval, { basePath, identity, now }: Reader, end: string): string {
  const { request, state, first } = approval
  const { id, tool, pce, shown, askedAt, expiresAt } = request
  const where = pce === undefined ? '' : html` on <bdi>${showStored(pce, 300)}</bdi>`
  return html`<li>
    <a href="${basePath}/approve/${id}">${titleOf({ name: tool })}</a>!${where}
    !${state === 'approved' ? '<span class="badge good">Approved</span>' : ''}
    !${request.persons === 2 && state === 'pending' ? html`<span class="badge warning">${first === null ? 0 : 1} of 2 approvals</span>` : ''}
    !${shown.effect === 'widening' || shown.effect === 'mixed' ? '<span class="badge bad">▲ opens more</span>' : ''}
    <p>!${renderLead(shown.summary, LONGEST_SUMMARY)}</p>
    <p class="hint">
      !${renderWho(askerOf(request), identity)} · asked !${renderTime(askedAt, describeAge(now - askedAt))} · closes
      ${describeWait(expiresAt - now)}!${state === 'approved' || end !== '' ? html` · !${renderGiven(approval, identity, now)}` : ''}
    </p>
    !${end}
  </li>`
}

/** Renders how often a request was approved, and by whom. */
function renderGiven({ first, decision, state }: AskedApproval, identity: Identity, now: number): string {
  const given = [first, decision].filter((one) => one?.verdict === 'approved').filter((one) => one !== null)
  if (given.length === 0) return 'nobody has approved it yet'
  const each = given.map(({ by, at }) => html`!${renderWho(by, identity)}, !${renderTime(at, describeAge(now - at))}`)
  return html`approved by !${each.join(' and by ')}${state === 'approved' ? ', and not used yet' : ''}`
}
