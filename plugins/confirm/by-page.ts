import type { AskedApproval } from '../../schemas/approvals.js'
import { ToolError } from '../../schemas/errors.js'
import { type Approvals, revokedError } from './approvals.js'
import { describeCall } from './confirmed-call.js'
import { fitShown } from './fit-shown.js'
import { type HashedCall, NOTHING_SHOWN, type Standing, type Way } from './life.js'
import { isEnough, overridesOf } from './overrides.js'

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

/** The message for a call that a guardrail forbids unless two persons approve it. */
const TWO =
  'Two people have to approve this call before it runs, because of a guardrail of the operator (see guardrails). Nothing was changed.'

/** Describes to the model who must decide. */
const WHO = { page: 'the person you work for', 'two-person': 'an admin other than the person you work for' } as const
const whoOf = ({ method }: Approvals, persons: 2 | undefined) =>
  persons === 2 ? 'two admins other than the person you work for' : WHO[method]

/**
 * The way of asking on a page (D143): a person logs in with a browser and decides there, and the repeated call finds
 * the decision in the store. If the client can open a URL for its user, the question contains the address of the page
 * (URL elicitation, D157).
 */
export const byPage = (approvals: Approvals): Way => ({
  hasPage: true,

  async find(call) {
    const { tool, callerContext, paramsHash } = call
    const found = await approvals.find(describeCall(tool, callerContext, paramsHash))
    if (found === null) return unasked('missing')
    if (found.state !== 'pending' || isEnough(found.request, call)) return standingOf(found, approvals, call)
    // The call now touches a further guardrail, so a decision about what was shown would not be enough.
    await approvals.giveUp(found, call.call.requestId)
    return unasked('stale')
  },

  async ask(hashed, { reason, outlook, instead }) {
    const { tool, callerContext, paramsHash, note, guardrails = [], persons } = hashed
    const { requestId } = hashed.call
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
      ...(guardrails.length > 0 && { guardrails }),
      ...(persons === 2 && { persons }),
    }
    const { asked, isNew } = await approvals.ask(call, question, instead)
    // Another process or a simultaneous call has already asked this question. A person may even have decided by now.
    if (!isNew) return pending(approvals, asked)
    note({
      approval_id: asked.request.id,
      approval: 'asked',
      ...(persons === 2 && { overrides: overridesOf(question) }),
    })
    const missing = persons === 2 ? TWO : MESSAGES.missing
    return {
      message: reason === 'expired' || reason === 'stale' ? MESSAGES[reason] : missing,
      hint: `Only ${persons === 2 ? 'people' : 'a person'} can approve it, in their browser: show the summary, and give approval_url to ${whoOf(approvals, persons)}. Once they have decided, repeat exactly the same call: it then runs, or says that it was denied. A confirm token is of no use here.`,
      details: { ...onPce, ...whereOf(approvals, asked) },
    }
  },
})

const unasked = (reason: keyof typeof MESSAGES) => ({ state: 'unasked', reason }) as const

function standingOf(found: AskedApproval, approvals: Approvals, call: HashedCall): Standing {
  const { request, decision, first, state } = found
  const { id, boundTo } = request
  switch (state) {
    case 'pending':
      return { state: 'asked', refusal: pending(approvals, found) }
    case 'denied':
      return { state: 'denied', boundTo, question: id, refusal: denied(found) }
    case 'approved': {
      const { iss, sub } = decision!.by
      const overrides = overridesOf(request)
      return {
        state: 'approved',
        boundTo,
        redeem: ({ call: { requestId }, context: { signal }, findBinding }) =>
          approvals.redeem(found, findBinding, { signal, requestId, isEnough: isEnough(request, call) }),
        ...(overrides.length > 0 && { overrides }),
        redeemed: {
          approval_id: id,
          approval: 'used',
          approved_by: { iss, sub },
          ...(first !== null && { first_approved_by: { iss: first.by.iss, sub: first.by.sub } }),
          ...(overrides.length > 0 && { overrides }),
        },
        replayed: {
          message: 'The approval was used by another run of this call; this one did not run.',
          facts: { approval_id: id },
        },
      }
    }
    case 'revoked':
      if (approvals.isOver(found)) return unasked('expired')
      return { state: 'denied', boundTo, question: id, refusal: revokedError(found.request) }
    case 'used':
      return unasked('missing')
    case 'expired':
      return unasked('expired')
    case 'void':
      return unasked('stale')
  }
}

const whereOf = (approvals: Approvals, { request, first }: AskedApproval) => ({
  approval_url: approvals.urlOf(request.id),
  approval_id: request.id,
  expires_at: new Date(request.expiresAt).toISOString(),
  ...(request.persons === 2 && { approvals_given: first === null ? 0 : 1, approvals_needed: 2 }),
})

function pending(approvals: Approvals, asked: AskedApproval): ToolError {
  const { paramsHash, shown, persons } = asked.request
  const details = { params_hash: paramsHash, summary: shown.summary, ...whereOf(approvals, asked) }
  const message =
    asked.first === null
      ? 'Nobody has decided about this call yet. Nothing was changed.'
      : 'One of the two people who have to approve this call has done so. Nothing was changed.'
  return new ToolError('approval_pending', message, details, {
    hint: `Give approval_url to ${whoOf(approvals, persons)}, and repeat exactly the same call once they have decided; asking again and again does not help.`,
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
