import { html } from 'ghtml'
import type { ApprovalPart, AskedApproval } from '../../../schemas/approvals.js'
import type { PersonMethod } from '../../../schemas/config.js'
import { titleOf } from '../../../tools/define.js'
import { describeAge, describeWait } from '../layout/describe-time.js'
import { layOut, LOGOUT_BUTTON } from '../layout/page-layout.js'
import { renderPerson } from '../layout/person.js'
import { askerOf, type Reader, renderLogout, renderTime, renderWho } from './approval-page.js'
import { renderLead } from './render-sentence.js'
import { showStored } from './show-stored.js'

interface WaitingPage extends Reader {
  method: PersonMethod
  total: number
  approvals: readonly { approval: AskedApproval; part: ApprovalPart }[]
}

const LONGEST_SUMMARY = 300

/**
 * Renders two lists of approval requests: those that wait for a decision of this person, and this person's own, which
 * wait for a decision of other people.
 */
export function renderWaitingPage(page: WaitingPage): string {
  const { total, approvals, method } = page
  const open = approvals.filter(({ approval }) => approval.state === 'pending')
  const theirs = open.filter(({ part }) => part === 'asker' || part === 'admin')
  const watched = open.filter(({ part }) => part === 'watching')
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
      !${renderCard('waiting', 'Waiting for you', theirs, page, 'Nothing waits for you.')}
      !${watched.length === 0 ? '' : renderCard('yours', 'Yours, waiting for somebody else', watched, page, '')}
      !${left > 0 ? html`<p class="foot">${left} more ${left === 1 ? 'waits' : 'wait'}: the oldest of each person are listed first, and the others follow as these are decided.</p>` : ''}
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
            !${rows.map((row) => renderRow(row, page)).join('')}
          </ul>`
    }
  </section>`
}

function renderRow(
  { approval: { request } }: WaitingPage['approvals'][number],
  { basePath, identity, now }: WaitingPage,
): string {
  const { id, tool, pce, shown, askedAt, expiresAt } = request
  const where = pce === undefined ? '' : html` on <bdi>${showStored(pce, 300)}</bdi>`
  return html`<li>
    <a href="${basePath}/approve/${id}">${titleOf({ name: tool })}</a>!${where}
    !${shown.effect === 'widening' || shown.effect === 'mixed' ? '<span class="badge bad">▲ opens more</span>' : ''}
    <p>!${renderLead(shown.summary, LONGEST_SUMMARY)}</p>
    <p class="hint">
      !${renderWho(askerOf(request), identity)} · asked !${renderTime(askedAt, describeAge(now - askedAt))} · closes
      ${describeWait(expiresAt - now)}
    </p>
  </li>`
}
