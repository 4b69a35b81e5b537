import { html } from 'ghtml'
import {
  LONGEST_NOTE,
  type ApprovalPart,
  type ApprovalRequest,
  type AskedApproval,
} from '../../../schemas/approvals.js'
import type { Identity, Role } from '../../../schemas/caller.js'
import type { PersonMethod } from '../../../schemas/config.js'
import type { TouchedGuardrail } from '../../../schemas/guardrails.js'
import { titleOf } from '../../../tools/define.js'
import { describeAge, describeMoment, describeWait } from '../layout/describe-time.js'
import { layOut, LOGOUT_BUTTON, type Notice, renderNotice } from '../layout/page-layout.js'
import { renderPerson, showName } from '../layout/person.js'
import { CSRF_FIELD } from '../check-request.js'
import { renderChange } from './render-change.js'
import { renderPicture } from './render-picture.js'
import { renderRevoke } from './render-revoke.js'
import { renderLead, renderQuotation } from './render-sentence.js'
import { showStored } from './show-stored.js'

/** What every approval page needs to know: who views it, where its forms lead, and the current time. */
export interface Reader {
  identity: Identity
  role: Role | null
  csrfToken: string
  basePath: string
  /** The path to which the logout form is posted. */
  logoutPath: string
  /** The path of this page without the base path. The next login returns to this page. */
  ownPath: string
  /** The current time, in milliseconds since the epoch. */
  now: number
}

interface ApprovalPage extends Reader {
  approval: AskedApproval
  part: Exclude<ApprovalPart, 'nobody'>
  method: PersonMethod
  mayRevoke: boolean
  /** The full address of the page, which can be sent to another person. */
  address: string
  /**
   * The path of the login, if the person must log in again before deciding; null if the last login is recent enough.
   */
  loginAgainPath: string | null
  notice: Notice | null
  /**
   * The note that the person entered in a refused form, and the error message, which says that this note was too long;
   * null if no form was refused.
   */
  entered: { note: string; error: string } | null
}

/**
 * Renders the page about one approval request, with the form for the decision or with the outcome. The page shows only
 * what was stored when the approval was requested.
 */
export function renderApprovalPage(page: ApprovalPage): string {
  const { approval, part, notice, entered } = page
  const { request, state } = approval
  const title = titleOf({ name: request.tool })
  const mayDecide = state === 'pending' && part !== 'watching'
  return layOut({
    title: `${entered === null ? '' : 'Error: '}${mayDecide ? 'Approve' : STATES[state].title}: ${title}`,
    corner: LOGOUT_BUTTON,
    isWide: true,
    body: html`
      <div>
        <h1>
          ${mayDecide && !hasApproved(approval.first, page.identity) ? `Approve “${title}”?` : title}
          <span class="badge ${STATES[state].kind}">${titleOfState(approval)}</span>
        </h1>
        <p class="lead">!${renderLead(request.shown.summary, 4000)}</p>
        !${renderPerson(page)} !${mayDecide ? '<p class="jump"><a href="#decide">Go to the decision</a></p>' : ''}
      </div>
      !${notice === null ? '' : renderNotice(notice)} !${state === 'pending' ? '' : renderOutcome(page)}
      !${renderGuardrails(page)} !${renderAsked(request, state === 'pending', page.now)}
      !${renderPicture(request.shown)} !${renderChange(request.shown)}
      !${mayDecide ? renderDecision(page) : state === 'pending' ? renderWatching(page) : ''}
      !${page.mayRevoke ? renderRevocation(page) : ''}
      <p class="foot"><a href="${page.basePath}/approve">All that waits for you</a></p>
    `,
    forms: renderLogout(page),
  })
}

/** Renders the hidden form that the logout button submits. */
export const renderLogout = ({ logoutPath, ownPath, csrfToken }: Reader): string =>
  html`<form id="logout-form" method="post" action="${logoutPath}" hidden>
    <input type="hidden" name="${CSRF_FIELD}" value="${csrfToken}" />
    <input type="hidden" name="to" value="${ownPath}" />
  </form>`

const STATES: Readonly<Record<AskedApproval['state'], { title: string; kind: string }>> = {
  pending: { title: 'Waiting', kind: 'warning' },
  approved: { title: 'Approved', kind: 'good' },
  denied: { title: 'Denied', kind: 'bad' },
  used: { title: 'Approved and used', kind: 'good' },
  void: { title: 'Void', kind: 'plain' },
  expired: { title: 'Expired', kind: 'plain' },
  revoked: { title: 'Revoked', kind: 'bad' },
}

/**
 * Returns the state of the request in words. For a call that needs two people, it includes how many of them have
 * approved.
 */
const titleOfState = ({ state, request, first }: AskedApproval): string =>
  state === 'pending' && request.persons === 2 ? `${first === null ? 0 : 1} of 2 approvals` : STATES[state].title

/**
 * Renders the guardrails that the call touches, what the approval of two people overrides, and who has given the first
 * approval.
 */
function renderGuardrails({ approval, identity, now }: ApprovalPage): string {
  const { request, first, decision, state } = approval
  const { guardrails = [], persons } = request
  if (guardrails.length === 0) return ''
  const kind = persons === 2 ? 'warning notice' : 'plain notice'
  const title = persons === 2 ? 'Two people have to approve this call' : 'Guardrails'
  const given = [first, ...(decision?.verdict === 'approved' ? [decision] : [])].filter((one) => one !== null)
  const none = state === 'pending' ? '0 of 2 approvals: nobody has approved yet.' : 'Nobody approved.'
  return html`<section class="${kind}" aria-labelledby="guardrails">
    <h2 id="guardrails">${title}</h2>
    <ul>
      !${guardrails.map((one) => html`<li>!${renderGuardrail(one, persons === 2)}</li>`).join('')}
    </ul>
    !${
      persons !== 2
        ? ''
        : given.length === 0
          ? html`<p>${none}</p>`
          : given
              .map(
                ({ by, at, note }, index) =>
                  html`<p>
                    ${index + 1} of 2 approvals, by !${renderWho(by, identity)}:
                    !${renderTime(at, describeAge(now - at))}.
                    !${note === undefined || index > 0 ? '' : html`Note: <q><bdi>${showStored(note, LONGEST_NOTE)}</bdi></q>`}
                  </p>`,
              )
              .join('')
    }
  </section>`
}

function renderGuardrail(one: TouchedGuardrail, isOverridden: boolean): string {
  const { workloads_affected: affected, max_workloads_affected: most, window, frozen_until: until } = one
  if (one.guardrail === 'too_many_workloads') {
    const many = affected == null ? 'a number that is not known' : affected.toLocaleString('en')
    return html`Workloads affected: <b>${many}</b>, of at most
      <b>${(most ?? 0).toLocaleString('en')}</b> ${one.needs_two_persons ? 'without two people.' : 'at a time.'}`
  }
  const end =
    until == null
      ? 'No end of the freeze is in sight.'
      : html`The freeze runs until !${html`<b>${describeMoment(Date.parse(until))}</b>`}.`
  return html`${isOverridden ? 'Overrides' : 'Would override'} the freeze
    <b><bdi>${showStored(window ?? '', 300)}</bdi></b
    >, for this call alone. !${end}`
}

/**
 * Renders the name of a person, followed by the person's subject (`sub`). The name is only what the identity provider
 * says, whereas the subject identifies the person.
 */
export function renderWho({ sub, iss, name }: Pick<Identity, 'sub' | 'iss' | 'name'>, reader: Identity): string {
  const isReader = sub === reader.sub && iss === reader.iss
  const account = name === undefined || name === sub ? '' : html` (<bdi>${showName(sub)}</bdi>)`
  // Two providers can use the same subject for different people, so the issuer is named unless it is also the reader's
  // issuer.
  const elsewhere = iss === reader.iss ? '' : html`, logged in at <bdi>${showName(iss)}</bdi>`
  return html`<b><bdi>${showName(name ?? sub)}</bdi></b
    >!${account}!${elsewhere}${isReader ? ' – you' : ''}`
}

export const askerOf = ({ owner, ownerName }: ApprovalRequest) => ({
  ...owner,
  ...(ownerName !== undefined && { name: ownerName }),
})

export const renderTime = (at: number, relative: string): string =>
  html`<time datetime="${new Date(at).toISOString()}">${describeMoment(at)}</time>, ${relative}`

function renderAsked(request: ApprovalRequest, isOpen: boolean, now: number): string {
  const { tool, pce, client, askedAt, expiresAt, id, requestId } = request
  const asker = askerOf(request)
  const facts: [string, string][] = [
    ['Who asks', html`!${renderWho(asker, { ...asker, sub: '', groups: [], hasGroupsOverage: false })}`],
    [
      'Through',
      client === undefined
        ? 'a client that does not say what it is'
        : html`!${renderQuotation(showStored(client, 300))} <span class="hint">(what the client calls itself)</span>`,
    ],
    ['PCE', pce === undefined ? 'none: the tool works on no PCE' : html`<bdi>${showStored(pce, 300)}</bdi>`],
    ['Tool', html`${titleOf({ name: tool })} <code>${showStored(tool, 200)}</code>`],
    ['Asked', renderTime(askedAt, describeAge(now - askedAt))],
    [
      isOpen ? 'Open until' : 'Until',
      renderTime(expiresAt, expiresAt > now ? describeWait(expiresAt - now) : describeAge(now - expiresAt)),
    ],
    ['Reference', html`<code>${id.slice(0, 8)}…</code>, request <code>${showStored(requestId, 100)}</code>`],
  ]
  return html`<section class="card" aria-labelledby="asked">
    <h2 id="asked">Who asks for it</h2>
    <dl>
      !${facts
        .map(
          ([name, fact]) =>
            html`<dt>${name}</dt>
              <dd>!${fact}</dd>`,
        )
        .join('')}
    </dl>
  </section>`
}

/**
 * Renders the outcome of an approval request. The outcome takes the focus, unless there is a notice above it, because
 * the person has opened the page to see the outcome.
 */
function renderOutcome({ approval, identity, now, notice }: ApprovalPage): string {
  const { decision, request, state } = approval
  const { kind } = STATES[state]
  const words = { approved: 'Approved', denied: 'Denied' } as const
  const isShownAbove = request.persons === 2 && decision?.verdict === 'approved'
  const who =
    decision === null || isShownAbove
      ? ''
      : html`<p>
          ${words[decision.verdict]} by !${renderWho(decision.by, identity)}:
          !${renderTime(decision.at, describeAge(now - decision.at))}.
        </p>`
  const note =
    decision?.note === undefined
      ? ''
      : html`<p>
          Note: <q><bdi>${showStored(decision.note, LONGEST_NOTE)}</bdi></q>
        </p>`
  const isFirst = notice === null ? 'tabindex="-1" autofocus' : ''
  return html`<section
    class="${kind === 'plain' ? 'plain' : kind} notice"
    role="status"
    aria-labelledby="outcome"
    !${isFirst}
  >
    <h2 id="outcome">${STATES[state].title}</h2>
    !${who} !${note}
    <p>${explainState(approval, request.expiresAt, now)}</p>
  </section>`
}

function explainState({ state, decision, first }: AskedApproval, expiresAt: number, now: number): string {
  switch (state) {
    case 'approved':
      return `The call may run once, exactly as shown here, ${describeWait(expiresAt - now)} at the latest. It runs when the client of the person who asked repeats it. If anything has changed by then, it does not run, and asks again.`
    case 'denied':
      return `The call does not run: ${describeDenial(expiresAt)} The client of the person who asked is told when it repeats the call, with the note.`
    case 'used':
      return 'The call was let run, once. This approval lets no other call run.'
    case 'revoked':
      return `An admin took it back; the audit log says who. The call does not run with it. The client of the person who asked is told so ${expiresAt > now ? `until ${describeMoment(expiresAt)}; later, it is` : 'no more; if it is repeated, it is'} asked again.`
    case 'void':
      return 'What it was for has changed since, or the person who decided is no longer allowed to. The call did not run with it; when it is repeated, it asks again.'
    default:
      if (decision === null && first !== null)
        return 'Only one of two people approved in time. The call did not run; when it is repeated, it asks again.'
      return decision === null
        ? 'Nobody decided in time. The call did not run; when it is repeated, it asks again.'
        : 'The call was not repeated in time, so it did not run. When it is repeated, it asks again.'
  }
}

/**
 * Renders the card for a person who may see the approval request but not decide about it: in two-person mode, the
 * person who asked; otherwise, a person whose role may not use the tool.
 */
function renderWatching({ method, address, approval }: ApprovalPage): string {
  const why =
    approval.request.persons === 2
      ? 'You asked for this call, so two others decide: people with the role admin, neither of whom is you.'
      : method === 'two-person'
        ? 'You asked for this call, so somebody else decides: a person with the role admin who is not you.'
        : 'Your role does not allow this tool, so a person with the role admin decides.'
  return html`<section class="card" aria-labelledby="decide">
    <h2 id="decide">Not yours to decide</h2>
    <p>${why} Send them the address of this page:</p>
    <p><code>${address}</code></p>
  </section>`
}

function renderDecision(page: ApprovalPage): string {
  const { approval, part, loginAgainPath, identity, method } = page
  const { request, first } = approval
  const asker = renderWho(askerOf(approval.request), { ...identity, sub: '' })
  const role =
    part === 'asker'
      ? 'You decide about your own call: it was made with your login.'
      : request.persons === 2
        ? html`You decide as an admin about the call of !${asker}, who cannot approve it. It runs only after two people
          have approved; one denial ends it.`
        : method === 'two-person'
          ? html`You decide as an admin about the call of !${asker}, who cannot approve it.`
          : html`You decide as an admin about the call of !${asker}, who could do so as well.`
  return html`<section class="card" aria-labelledby="decide">
    <h2 id="decide" tabindex="-1">Your decision</h2>
    <p>!${role}</p>
    !${hasApproved(first, identity) ? html`<p><b>You have approved it, as the first of two.</b> Send another admin the address of this page: <code>${page.address}</code></p>` : ''}
    !${loginAgainPath === null ? renderForm(page) : renderLogInAgain(loginAgainPath)}
  </section>`
}

/** Renders the card with which an admin revokes a request or its approval. */
const renderRevocation = (page: ApprovalPage): string =>
  html`<section class="card" aria-labelledby="revoke">
    <h2 id="revoke">Take it back</h2>
    <p>As an admin you can end ${page.approval.state === 'approved' ? 'this approval' : 'this request'}.</p>
    <div>!${renderRevoke(page.approval, page)}</div>
  </section>`

/** Returns a sentence that says exactly which calls a denial stops, because it stops fewer than one might expect. */
const describeDenial = (expiresAt: number): string =>
  `a denial holds for exactly this call of this person, until ${describeMoment(expiresAt)} and while it would do what is shown here. Later, with other arguments, or from somebody else, it is asked again.`

const renderLogInAgain = (path: string) =>
  html`<p>
      To decide, enter your password once more: your identity provider let you in without asking for it, or some time
      ago. It leads you back to this page, where nothing will have changed.
    </p>
    <div class="buttons"><a class="button primary" href="${path}">Log in again to decide</a></div>`

/** Returns true if the person is the one who has given the first of two approvals. */
export const hasApproved = (first: AskedApproval['first'], { iss, sub }: Identity): boolean =>
  first !== null && first.by.iss === iss && first.by.sub === sub

function renderForm({ approval, csrfToken, basePath, entered, part, identity }: ApprovalPage): string {
  const { request, first } = approval
  const error = entered?.error
  const their = part === 'asker' ? 'your client' : 'their client'
  const isOver = hasApproved(first, identity)
  const isFirst = request.persons === 2 && first === null
  return html`<form method="post" action="${basePath}/approve/${approval.request.id}" autocomplete="off">
    <input type="hidden" name="${CSRF_FIELD}" value="${csrfToken}" />
    <ul>
      !${
        isOver
          ? ''
          : isFirst
            ? html`<li>
                <b>Approve</b> is the first of two approvals: nothing runs until another admin approves it as well, by
                ${describeMoment(request.expiresAt)}.
              </li>`
            : html`<li>
                <b>Approve</b> lets this call run once, exactly as shown, until ${describeMoment(request.expiresAt)}: as
                soon as ${their} repeats it. If anything has changed by then, it does not run and asks again.
              </li>`
      }
      <li>
        <b>Deny</b> keeps it from running: ${describeDenial(approval.request.expiresAt)} When ${their} repeats it, it is
        told so, and your note.
      </li>
    </ul>
    <div class="field ${error === undefined ? '' : 'invalid'}">
      <label for="note">Note (optional)</label>
      <p class="hint" id="note-hint">
        Kept in the audit log, and shown to whoever asked and to their model. At most ${LONGEST_NOTE} characters.
      </p>
      !${error === undefined ? '' : html`<p class="error" id="note-error">${error}</p>`}
      <textarea
        id="note"
        name="note"
        rows="3"
        maxlength="${LONGEST_NOTE}"
        aria-describedby="!${error === undefined ? '' : 'note-error '}note-hint"
        !${error === undefined ? '' : 'aria-invalid="true"'}
      >
${entered?.note ?? ''}</textarea>
    </div>
    <div class="buttons">
      !${isOver ? '' : '<button class="primary" type="submit" name="verdict" value="approve">Approve this call</button>'}
      <button class="danger" type="submit" name="verdict" value="deny">Deny it</button>
    </div>
  </form>`
}
