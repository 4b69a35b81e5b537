import type { ConfirmReason } from '../../schemas/confirmations.js'
import { describeCall } from './confirmed-call.js'
import { NOTHING_SHOWN, type Way } from './life.js'
import type { Tokens } from './tokens.js'

const MESSAGES: Record<ConfirmReason, string> = {
  missing: 'This call needs a confirm token. Nothing was changed.',
  malformed: 'This server did not issue the confirm token. Nothing was changed.',
  mismatch:
    'The confirm token is for another call: another tool, other arguments, another caller or another PCE. Nothing was changed.',
  expired: 'The confirm token has expired. Nothing was changed.',
  stale:
    'What the call would do has changed since it was shown, or it was never shown. Nothing was changed, and the token was not used.',
}
const UNSHOWN =
  'Nobody can agree to this call, because what it would do could not be determined: no token for it counts. Nothing was changed.'
const HINT =
  'Show the summary to the person who decides. If they agree, POST `confirm.body` to `confirm.url` with the access token of this call, then repeat the same call with the confirm_token of the answer as params._meta.confirm_token.'

/**
 * The way of asking with a confirm token (S15, D19 to D21, D75): after the summary was shown, the client fetches a
 * token with POST /confirm and repeats the call with it. Fetching the token means approval; the user has no way to
 * refuse explicitly.
 *
 * @param url the URL of POST /confirm for clients.
 */
export const byToken = (tokens: Tokens, url: string): Way => ({
  find({ tool, call, callerContext, paramsHash, note }) {
    const reading = tokens.read(call.confirmToken, describeCall(tool, callerContext, paramsHash))
    if (reading.state === 'mismatch') note({ confirm_jti: reading.jti })
    if (reading.state !== 'signed') return { state: 'unasked', reason: reading.state }
    const { token } = reading
    note({ confirm_jti: token.jti })
    return {
      state: 'approved',
      // This empty text is never compared with a digest, because a token without a digest is refused before the
      // comparison.
      boundTo: token.boundTo ?? '',
      redeem: ({ findBinding, context }) => tokens.spend(token, findBinding, context.signal),
      replayed: { message: 'This confirm token was used before; the call did not run again.' },
    }
  },

  async ask({ tool, callerContext, paramsHash }, { reason, outlook }) {
    const call = describeCall(tool, callerContext, paramsHash)
    const onPce = call.pce && { pce: call.pce }
    if (outlook.boundTo === null) return { message: UNSHOWN, hint: NOTHING_SHOWN, details: { ...onPce } }
    const { expiresAt, challenge } = await tokens.ask(call, outlook.boundTo)
    const body = { tool: tool.name, params_hash: paramsHash, challenge }
    const confirm = { method: 'POST', url, body, expires_at: new Date(expiresAt).toISOString() }
    return { message: MESSAGES[reason], hint: HINT, details: { ...onPce, confirm } }
  },
})
