import type { Confirmations, ConfirmedCall, ConfirmReason } from '../../schemas/confirmations.js'
import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import { convert } from '../errors/convert.js'
import type { Gate, ValidSubject } from './admit-call.js'

const MESSAGES: Record<ConfirmReason, string> = {
  missing: 'This call needs a confirm token. Nothing was changed.',
  malformed: 'This server did not issue the confirm token. Nothing was changed.',
  mismatch:
    'The confirm token is for another call: another tool, other arguments, another caller or another PCE. Nothing was changed.',
  expired: 'The confirm token has expired. Nothing was changed.',
  stale:
    'What the call would do has changed since it was shown, or it was never shown. Nothing was changed, and the token was not used.',
}
const HINT =
  'Show the summary to the person who decides. If they agree, POST `confirm.body` to `confirm.url` with the access token of this call, then repeat the same call with the confirm_token of the answer as params._meta.confirm_token.'

/**
 * The confirm gate (S15, D19, D20, D21): lets a tool that asks for it run once for each token that its caller had minted for this
 * tool and these arguments. Other calls get `confirm_required {params_hash, reason, summary, confirm, …}` with what the call
 * would do, a repeated token gets `confirm_token_replay {params_hash}`. Throws `confirm_unavailable` where used tokens cannot be
 * recorded, and `invalid_argument` for arguments that have no hash.
 *
 * @param url of POST /confirm, as clients reach it.
 */
export const confirmGate = (confirmations: Confirmations, url: string): Gate => ({
  name: 'confirm',
  needs: 'arguments',
  onlyConfirmed: true,
  async check(subject) {
    const paramsHash = confirmations.hash(subject.call.arguments)
    const call = confirmations.describe(subject.callerContext, subject.tool.name, paramsHash)
    subject.note({ params_hash: paramsHash })
    const reading = confirmations.read(subject.call.confirmToken, call)
    if (reading.state === 'mismatch') subject.note({ confirm_jti: reading.jti })
    if (reading.state !== 'signed') throw await askFor(reading.state, subject, call, confirmations, url)

    const { token } = reading
    subject.note({ confirm_jti: token.jti })
    const spending = await confirmations.spend(token, () => findBinding(subject), subject.context.signal)
    if (spending === 'replayed') throw replayed(call)
    if (spending !== 'spent') throw await askFor(spending, subject, call, confirmations, url)
    const { boundTo } = token
    if (boundTo !== undefined) subject.approve({ boundTo, paramsHash })
  },
})

const findBinding = async ({ tool, args, context }: ValidSubject) =>
  (await tool.boundTo?.(args as never, context as never)) ?? null

function replayed({ paramsHash }: ConfirmedCall): ToolError {
  return new ToolError('confirm_token_replay', 'This confirm token was used before; the call did not run again.', {
    params_hash: paramsHash,
  })
}

/** The refusal that says what the call would do and how it is confirmed. */
async function askFor(
  reason: ConfirmReason,
  subject: ValidSubject,
  call: ConfirmedCall,
  confirmations: Confirmations,
  url: string,
): Promise<ToolError> {
  const { boundTo, shown } = await look(subject)
  const { expiresAt, challenge } = await confirmations.ask(call, boundTo)
  const { summary, ...facts } = shown
  const head = {
    params_hash: call.paramsHash,
    reason,
    ...(summary !== undefined && { summary }),
    ...(call.pce !== undefined && { pce: call.pce }),
    confirm: {
      method: 'POST',
      url,
      body: { tool: call.tool, params_hash: call.paramsHash, ...(challenge !== undefined && { challenge }) },
      expires_at: new Date(expiresAt).toISOString(),
    },
  }
  // No tool can displace what the gate says.
  const details = { ...head, ...facts, ...head }
  return new ToolError('confirm_required', MESSAGES[reason], details, { hint: HINT })
}

/**
 * What the call would do, and what a token for it is bound to. The binding is read first, so that anything that changes during
 * the preview makes the token stale instead of slipping in unseen. If the preview fails nothing is bound, since nothing can be
 * shown, and the answer says why; it still carries the hash. Throws only when the client has gone.
 */
async function look(subject: ValidSubject): Promise<{ boundTo: string | null; shown: ErrorDetails }> {
  const { tool, args, context } = subject
  try {
    const binding = await findBinding(subject)
    const preview = await tool.preview?.(args as never, context as never)
    const shown = preview === undefined ? {} : { ...preview.details, summary: preview.summary }
    return { boundTo: binding?.digest ?? null, shown }
  } catch (thrown) {
    if (context.signal.aborted) throw thrown
    const { code, message, hint, details } = convert(thrown)
    context.log.warn({ err: thrown, error: code }, 'a preview failed')
    const summary = `What this call would do could not be determined: ${message}`
    return {
      boundTo: null,
      shown: { summary, preview_error: { ...details, error: code, message, ...(hint && { hint }) } },
    }
  }
}
