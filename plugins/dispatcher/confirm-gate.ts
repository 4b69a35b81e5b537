import type { Confirmations, ConfirmedCall, ConfirmReason } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { Gate, ValidSubject } from './admit-call.js'
import { describeCall, findBinding, look, replayed } from './look-ahead.js'

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
 * The confirm gate (S15, D19, D20, D21, D75): lets a tool that asks for it run once for each token that its caller had minted for this
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
    const call = describeCall(subject, confirmations)
    const { paramsHash } = call
    const reading = confirmations.read(subject.call.confirmToken, call)
    if (reading.state === 'mismatch') subject.note({ confirm_jti: reading.jti })
    if (reading.state !== 'signed') throw await askFor(reading.state, subject, call, confirmations, url)

    const { token } = reading
    subject.note({ confirm_jti: token.jti })
    const spending = await confirmations.spend(token, () => findBinding(subject), subject.context.signal)
    if (spending === 'replayed') throw replayed(paramsHash)
    if (spending !== 'spent') throw await askFor(spending, subject, call, confirmations, url)
    // Only a token that carries one is ever spent.
    subject.approve({ boundTo: token.boundTo as string, paramsHash })
  },
})

/** The refusal that says what the call would do and how it is confirmed. */
async function askFor(
  reason: ConfirmReason,
  subject: ValidSubject,
  call: ConfirmedCall,
  confirmations: Confirmations,
  url: string,
): Promise<ToolError> {
  const { boundTo, summary, details: facts } = await look(subject)
  const { expiresAt, challenge } = await confirmations.ask(call, boundTo)
  const head = {
    params_hash: call.paramsHash,
    reason,
    summary,
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
