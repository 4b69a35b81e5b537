import { ToolError } from '../../schemas/errors.js'
import { NOTHING_SHOWN, type Way } from './life.js'

const MESSAGES = {
  missing: 'The person at this client has to agree to this call before it runs. Nothing was changed.',
  stale: 'What the call would do has changed since the person agreed to it. Nothing was changed.',
} as const

/**
 * Asks by a form of the client where nobody logs in (MCP_CONFIRM_STDIO, D147): the transport shows its person the question that travels beside
 * the refusal, and calls again with the digest that they agreed to. A no does not come here; the dispatcher refuses it (D172).
 *
 * The client asks, so this holds up a hasty model, and no client that answers for its person.
 */
export const byForm: Way = {
  async find({ tool, call: { consent, canAsk }, findBinding }) {
    // A yes comes with the run that it is for, and the transport hands it to no other one: there is nothing to claim.
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
