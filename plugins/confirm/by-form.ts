import { ToolError } from '../../schemas/errors.js'
import { NOTHING_SHOWN, type Way } from './life.js'

const MESSAGES = {
  missing: 'The person at this client has to agree to this call before it runs. Nothing was changed.',
  stale: 'What the call would do has changed since the person agreed to it. Nothing was changed.',
} as const

/**
 * The way of asking with a form in the client, for programs without a login (MCP_CONFIRM_STDIO, D147). The question is
 * part of the refusal, and the transport shows it to the user of the client. If the user agrees, the transport repeats
 * the call with the digest of what was shown. If the user does not agree, this code is not reached, because the
 * dispatcher handles the refusal (D172).
 *
 * Since the client shows the form, this way of asking stops a careless model, but not a client that answers on behalf
 * of its user.
 */
export const byForm: Way = {
  async find({ tool, call: { consent, canAsk }, findBinding }) {
    // A consent cannot be used twice, because the transport passes it to a single run of the call. Therefore it is not
    // marked as used.
    if (consent !== undefined)
      return (await findBinding()) === consent.boundTo
        ? { state: 'redeemed', boundTo: consent.boundTo }
        : { state: 'unasked', reason: 'stale' }
    if (canAsk === true) return { state: 'unasked', reason: 'missing' }
    throw new ToolError(
      'confirmation_unsupported',
      `${tool.name} runs only once the person at the client has agreed to it, and this client cannot ask them: it offers no elicitation by form. Nothing was changed.`,
    )
  },

  ask({ tool }, { reason, outlook: { boundTo, summary } }) {
    const message = MESSAGES[reason === 'missing' ? 'missing' : 'stale']
    if (boundTo === null)
      return { message: `${message} Nobody was asked, because there is nothing to show them.`, hint: NOTHING_SHOWN }
    return {
      message,
      hint: 'The client asks the person. Show them the summary, and call again once they want to be asked again.',
      ask: { boundTo, message: `${tool.name}: ${summary} Shall it run?` },
    }
  },
}
