import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import type { Gate, ValidSubject } from './admit-call.js'
import { findBinding, look } from './look-ahead.js'

const MESSAGES = {
  missing: 'The person at this client has to agree to this call before it runs. Nothing was changed.',
  stale: 'What the call would do has changed since the person agreed to it. Nothing was changed.',
} as const

/**
 * The gate of stdio where the operator wants people to be asked (MCP_CONFIRM_STDIO, D147): a tool that needs confirmation runs when the person
 * at the client has agreed to exactly what it would do now. Others get `confirm_required {params_hash, reason, summary, …}` with the question
 * for the transport to ask (`ToolError.ask`), and `confirmation_unsupported` where the client cannot ask anybody.
 *
 * The client asks, so this holds up a hasty model, and no client that answers for its person.
 *
 * @param hash of arguments (D19).
 */
export const stdioConfirmGate = (hash: (args: Record<string, unknown>) => string | Promise<string>): Gate => ({
  name: 'confirm',
  needs: 'arguments',
  onlyConfirmed: true,
  async check(subject) {
    const { consent, canAsk } = subject.call
    const paramsHash = await hash(subject.call.arguments)
    subject.note({ params_hash: paramsHash })
    if (consent === undefined) {
      if (canAsk !== true) throw unsupported(subject)
      throw await askFor('missing', subject, paramsHash)
    }
    if ((await findBinding(subject)) !== consent.boundTo) throw await askFor('stale', subject, paramsHash)
    subject.approve({ boundTo: consent.boundTo, paramsHash })
  },
})

const unsupported = ({ tool }: ValidSubject) =>
  new ToolError(
    'confirmation_unsupported',
    `${tool.name} runs only once the person at the client has agreed to it, and this client cannot ask them: it offers no elicitation by form. Nothing was changed.`,
  )

async function askFor(reason: keyof typeof MESSAGES, subject: ValidSubject, paramsHash: string): Promise<ToolError> {
  const outlook = await look(subject)
  const { boundTo, summary, details: facts } = outlook
  const head: ErrorDetails = { params_hash: paramsHash, reason, summary }
  const details = { ...head, ...facts, ...head }
  if (boundTo === null)
    return new ToolError(
      'confirm_required',
      `${MESSAGES[reason]} Nobody was asked, because there is nothing to show them.`,
      details,
      {
        hint: 'preview_error says why. Mend that, and call again.',
      },
    )
  const message = `${subject.tool.name}: ${summary} Shall it run?`
  return new ToolError('confirm_required', MESSAGES[reason], details, {
    ask: { boundTo, message },
    hint: 'The client asks the person. Show them the summary, and call again once they want to be asked again.',
  })
}
