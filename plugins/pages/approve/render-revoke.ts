import { html } from 'ghtml'
import type { AskedApproval } from '../../../schemas/approvals.js'
import { titleOf } from '../../../tools/define.js'
import { CSRF_FIELD } from '../check-request.js'
import { showName } from '../layout/person.js'

/**
 * Renders the button with which an admin revokes a request. The button must be unfolded before it can be pressed,
 * because a page without scripts cannot ask for a confirmation. `back` names the page to which the form returns
 * (`readBack`).
 */
export function renderRevoke(
  { request, state }: AskedApproval,
  { basePath, csrfToken }: { basePath: string; csrfToken: string },
  back: Readonly<Record<string, string>> = {},
): string {
  const fields = Object.entries({ [CSRF_FIELD]: csrfToken, ...back })
  const title = titleOf({ name: request.tool })
  return html`<details class="revoke">
    <summary>Revoke…<span class="unseen"> ${title}, asked by ${showName(request.owner.sub)}</span></summary>
    <form method="post" action="${basePath}/approve/${request.id}/revoke">
      !${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`).join('')}
      <p class="hint">
        ${state === 'approved' ? 'Takes the approval back' : 'Ends the request'}, for good: this call of this person
        does not run, and is not asked again before its time is over.
      </p>
      <button class="danger" type="submit">Revoke it<span class="unseen">: ${title}</span></button>
    </form>
  </details>`
}
