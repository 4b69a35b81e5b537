import { html } from 'ghtml'
import type { AskedApproval, LiveApprovals } from '../../../schemas/approvals.js'
import { layOut, LOGOUT_BUTTON, type Notice, renderNotice } from '../layout/page-layout.js'
import { renderPerson } from '../layout/person.js'
import { type Reader, renderLogout } from './approval-page.js'
import { renderRevoke } from './render-revoke.js'
import { writePlace } from './revoke.js'
import { renderRow } from './waiting-page.js'

interface LivePage extends Reader {
  list: LiveApprovals
  /** The position after which this page of the list begins, as a text; empty for the first page. */
  after: string
  notice: Notice | null
}

/** Renders one page of the list of all requests that can still lead to a run, each with a button that revokes it. */
export function renderLivePage(page: LivePage): string {
  const { list, after, notice, basePath } = page
  const { approvals, next } = list
  const more = next === null ? null : `${basePath}/approve/all?after=${writePlace(next)}`
  return layOut({
    title: 'All open requests',
    corner: LOGOUT_BUTTON,
    isWide: true,
    body: html`
      <div>
        <h1>All open requests</h1>
        <p class="lead">
          What everybody has asked for: what waits for a decision, and what was approved and not used yet. What ends
          first is listed first.
        </p>
        !${renderPerson(page)}
      </div>
      !${notice === null ? '' : renderNotice(notice)}
      <section class="card" aria-labelledby="open">
        <h2 id="open">
          ${after === '' ? 'Open' : 'Open, continued'}
          !${approvals.length === 0 ? '' : html`<span class="count">${approvals.length}</span>`}
        </h2>
        !${
          approvals.length === 0
            ? html`<p>${after === '' ? 'Nothing is open.' : 'Nothing more is open.'}</p>`
            : html`<ul class="rows">
                !${approvals.map((approval) => renderOpen(approval, page)).join('')}
              </ul>`
        }
        !${more === null ? '' : html`<div class="buttons"><a class="button" rel="next" href="${more}">Next page</a></div>`}
      </section>
      <p class="foot">
        ${more === null ? 'This is the end of the list.' : 'More follow on the next page.'}
        !${after === '' ? '' : html`<a href="${basePath}/approve/all">First page</a> · `}
        <a href="${basePath}/approve">What waits for you</a>
      </p>
    `,
    forms: renderLogout(page),
  })
}

const renderOpen = (approval: AskedApproval, page: LivePage): string =>
  renderRow(approval, page, renderRevoke(approval, page, { to: 'all', after: page.after }))
