import type { Approvals, AskedApproval } from '../../schemas/approvals.js'
import type { Confirmations, ConfirmedCall } from '../../schemas/confirmations.js'
import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import type { Gate, ValidSubject } from './admit-call.js'
import { describeCall, findBinding, look, replayed, showForPage } from './look-ahead.js'

type AskReason = 'missing' | 'expired' | 'stale'

const MESSAGES: Record<AskReason, string> = {
  missing: 'A person has to approve this call before it runs. Nothing was changed.',
  expired: 'The time to approve this call is over, so it is asked again. Nothing was changed.',
  stale:
    'What the call would do, or who approved it, is no longer what it was, so it is asked again. Nothing was changed.',
}

/** Who is meant, for the model to say. */
const WHO = { page: 'the person you work for', 'two-person': 'an admin other than the person you work for' } as const

const hintFor = ({ method }: Approvals): string =>
  `Only a person can approve it, in their browser: show the summary, and give approval_url to ${WHO[method]}. Once they have decided, repeat exactly the same call: it then runs, or says that it was denied. A confirm token is of no use here.`

/**
 * The gate of approvals by people (D143): lets a tool that needs confirmation run once for each approval of this call of this caller. Other
 * calls get `confirm_required {params_hash, reason, summary, approval_url, approval_id, expires_at, …}`, `approval_pending` while nobody has
 * decided, `approval_denied {note}` until the denial expires or the call would do something else, and `confirm_token_replay` where another one
 * was let run. Throws `confirm_unavailable`, and `invalid_argument` for arguments that have no hash.
 */
export const approvalGate = (approvals: Approvals, confirmations: Pick<Confirmations, 'hash' | 'describe'>): Gate => ({
  name: 'confirm',
  needs: 'arguments',
  onlyConfirmed: true,
  async check(subject) {
    const call = describeCall(subject, confirmations)
    const { paramsHash } = call
    const found = await approvals.find(call)
    switch (found?.state) {
      case 'pending':
        throw pending(approvals, found, paramsHash)
      case 'denied':
        if (await isStillMeant(found, subject)) throw denied(found, paramsHash)
        throw await askFor('stale', subject, call, approvals, found.request.id)
      case 'approved':
        return redeem(found, subject, call, approvals)
      case 'expired':
        throw await askFor('expired', subject, call, approvals)
      case 'void':
        throw await askFor('stale', subject, call, approvals)
      default:
        throw await askFor('missing', subject, call, approvals)
    }
  },
})

async function redeem(
  found: AskedApproval,
  subject: ValidSubject,
  call: ConfirmedCall,
  approvals: Approvals,
): Promise<void> {
  const { request, decision } = found
  const redemption = await approvals.redeem(found, () => findBinding(subject), {
    signal: subject.context.signal,
    requestId: subject.call.requestId,
  })
  if (redemption === 'replayed') {
    subject.note({ approval_id: request.id })
    throw replayed(call.paramsHash, 'The approval was used by another run of this call; this one did not run.')
  }
  if (redemption === 'void') throw await askFor('stale', subject, call, approvals)
  const { iss, sub } = decision!.by
  subject.note({ approval_id: request.id, approval: 'used', approved_by: { iss, sub } })
  subject.approve({ boundTo: request.boundTo, paramsHash: call.paramsHash })
}

/** Whether the call would still do what somebody has said no to; where that cannot be told, the no stands. */
async function isStillMeant({ request }: AskedApproval, subject: ValidSubject): Promise<boolean> {
  try {
    return (await findBinding(subject)) === request.boundTo
  } catch (error) {
    if (subject.context.signal.aborted) throw error
    return true
  }
}

const whereOf = (approvals: Approvals, { request }: AskedApproval) => ({
  approval_url: approvals.urlOf(request.id),
  approval_id: request.id,
  expires_at: new Date(request.expiresAt).toISOString(),
})

function pending(approvals: Approvals, found: AskedApproval, paramsHash: string): ToolError {
  const details = { params_hash: paramsHash, summary: found.request.shown.summary, ...whereOf(approvals, found) }
  return new ToolError('approval_pending', 'Nobody has decided about this call yet. Nothing was changed.', details, {
    hint: `Give approval_url to ${WHO[approvals.method]}, and repeat exactly the same call once they have decided; asking again and again does not help.`,
  })
}

function denied({ request, decision }: AskedApproval, paramsHash: string): ToolError {
  const details = {
    params_hash: paramsHash,
    approval_id: request.id,
    ...(decision?.note !== undefined && { note: decision.note }),
    denied_until: new Date(request.expiresAt).toISOString(),
  }
  return new ToolError('approval_denied', 'A person has denied this call. Nothing was changed.', details)
}

/** The refusal that says what the call would do and where a person approves it. */
async function askFor(
  reason: AskReason,
  subject: ValidSubject,
  call: ConfirmedCall,
  approvals: Approvals,
  instead?: string,
): Promise<ToolError> {
  const { callerContext, context } = subject
  const outlook = await look(subject)
  const { summary, details: facts } = outlook
  const head: ErrorDetails = {
    params_hash: call.paramsHash,
    reason,
    summary,
    ...(call.pce !== undefined && { pce: call.pce }),
  }
  if (outlook.boundTo === null) {
    return new ToolError(
      'confirm_required',
      'A person has to approve this call before it runs, and nobody was asked, because there is nothing to show them. Nothing was changed.',
      { ...head, ...facts, ...head },
      { hint: 'preview_error says why. Mend that, and call again.' },
    )
  }
  const { tokenSays, client } = callerContext
  const name = tokenSays?.name
  const program = tokenSays?.clientId ?? client
  const { asked, isNew } = await approvals.ask(
    call,
    {
      boundTo: outlook.boundTo,
      shown: showForPage(outlook),
      requestId: context.requestId,
      ...(name !== undefined && { ownerName: name }),
      ...(program !== undefined && { client: cleanName(program) }),
    },
    instead,
  )
  // Another process, or another call at the same time, has asked the same, and somebody may have decided.
  if (!isNew) return pending(approvals, asked, call.paramsHash)
  subject.note({ approval_id: asked.request.id, approval: 'asked' })
  const where = whereOf(approvals, asked)
  const details = { ...head, ...where, ...facts, ...head, ...where }
  return new ToolError('confirm_required', MESSAGES[reason], details, { hint: hintFor(approvals) })
}

const LONGEST_NAME = 128

/** What a client calls itself, on one line. */
const cleanName = (text: string): string =>
  text
    .slice(0, LONGEST_NAME)
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
