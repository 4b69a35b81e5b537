import type { AskedApproval } from '../../schemas/approvals.js'
import { ToolError } from '../../schemas/errors.js'
import type { Approvals } from './approvals.js'
import { describeCall } from './confirmed-call.js'
import { fitShown } from './fit-shown.js'
import { NOTHING_SHOWN, type Standing, type Way } from './life.js'

/**
 * The messages for calls that are confirmed on a page. There are none about malformed or mismatching tokens, because
 * these calls carry no token.
 */
const MESSAGES = {
  missing: 'A person has to approve this call before it runs. Nothing was changed.',
  expired: 'The time to approve this call is over, so it is asked again. Nothing was changed.',
  stale:
    'What the call would do, or who approved it, is no longer what it was, so it is asked again. Nothing was changed.',
}

/** The person who must decide, in words for the model. */
const WHO = { page: 'the person you work for', 'two-person': 'an admin other than the person you work for' } as const

/**
 * The way of asking on a page (D143): a person logs in with a browser and decides there, and the repeated call finds
 * the decision in the store. If the client can open a URL for its user, the question contains the address of the page
 * (URL elicitation, D157).
 */
export const byPage = (approvals: Approvals): Way => ({
  async find({ tool, callerContext, paramsHash }) {
    const found = await approvals.find(describeCall(tool, callerContext, paramsHash))
    return found === null ? unasked('missing') : standingOf(found, approvals)
  },

  async ask({ tool, call: { requestId }, callerContext, paramsHash, note }, { reason, outlook, instead }) {
    const call = describeCall(tool, callerContext, paramsHash)
    const onPce = call.pce && { pce: call.pce }
    if (outlook.boundTo === null)
      return {
        message:
          'A person has to approve this call before it runs, and nobody was asked, because there is nothing to show them. Nothing was changed.',
        hint: NOTHING_SHOWN,
        details: { ...onPce },
      }
    const { client, tokenSays } = callerContext
    const question = {
      boundTo: outlook.boundTo,
      shown: fitShown(outlook),
      requestId,
      ownerName: tokenSays?.name,
      client: cleanName(tokenSays?.clientId ?? client),
    }
    const { asked, isNew } = await approvals.ask(call, question, instead)
    // Another process or a simultaneous call has already asked this question. A person may even have decided by now.
    if (!isNew) return pending(approvals, asked)
    note({ approval_id: asked.request.id, approval: 'asked' })
    return {
      message: reason === 'expired' || reason === 'stale' ? MESSAGES[reason] : MESSAGES.missing,
      hint: `Only a person can approve it, in their browser: show the summary, and give approval_url to ${WHO[approvals.method]}. Once they have decided, repeat exactly the same call: it then runs, or says that it was denied. A confirm token is of no use here.`,
      details: { ...onPce, ...whereOf(approvals, asked) },
    }
  },
})

const unasked = (reason: keyof typeof MESSAGES) => ({ state: 'unasked', reason }) as const

function standingOf(found: AskedApproval, approvals: Approvals): Standing {
  const { request, decision, state } = found
  const { id, boundTo } = request
  switch (state) {
    case 'pending':
      return { state: 'asked', refusal: pending(approvals, found) }
    case 'denied':
      return { state: 'denied', boundTo, question: id, refusal: denied(found) }
    case 'approved': {
      const { iss, sub } = decision!.by
      return {
        state: 'approved',
        boundTo,
        redeem: ({ call: { requestId }, context: { signal }, findBinding }) =>
          approvals.redeem(found, findBinding, { signal, requestId }),
        redeemed: { approval_id: id, approval: 'used', approved_by: { iss, sub } },
        replayed: {
          message: 'The approval was used by another run of this call; this one did not run.',
          facts: { approval_id: id },
        },
      }
    }
    case 'used':
      return unasked('missing')
    case 'expired':
      return unasked('expired')
    case 'void':
      return unasked('stale')
  }
}

const whereOf = (approvals: Approvals, { request }: AskedApproval) => ({
  approval_url: approvals.urlOf(request.id),
  approval_id: request.id,
  expires_at: new Date(request.expiresAt).toISOString(),
})

function pending(approvals: Approvals, asked: AskedApproval): ToolError {
  const { paramsHash, shown } = asked.request
  const details = { params_hash: paramsHash, summary: shown.summary, ...whereOf(approvals, asked) }
  return new ToolError('approval_pending', 'Nobody has decided about this call yet. Nothing was changed.', details, {
    hint: `Give approval_url to ${WHO[approvals.method]}, and repeat exactly the same call once they have decided; asking again and again does not help.`,
  })
}

function denied({ request, decision }: AskedApproval): ToolError {
  const details = {
    params_hash: request.paramsHash,
    approval_id: request.id,
    ...(decision?.note !== undefined && { note: decision.note }),
    denied_until: new Date(request.expiresAt).toISOString(),
  }
  return new ToolError('approval_denied', 'A person has denied this call. Nothing was changed.', details)
}

const LONGEST_NAME = 128

/** Puts the name that a client has chosen for itself on one line. */
const cleanName = (text?: string): string | undefined =>
  text
    ?.slice(0, LONGEST_NAME)
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
