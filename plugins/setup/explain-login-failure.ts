import { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client'
import { ToolError } from '../../schemas/errors.js'

/** The error codes that a provider may answer (RFC 6749, 4.1.2.1 and 5.2; OpenID Connect Core, 3.1.2.6; RFC 8707, 2), and no other text of it. */
const KNOWN_ERRORS = new Set([
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_client',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
])
const PASSING = new Set(['server_error', 'temporarily_unavailable'])

/** Codes of the library for answers that nobody could make sense of, or that never came. */
const NO_ANSWER = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
])

const OPERATOR_HINT = 'Try again; if it stays like this, the operator of this server has to look into its log.'

/**
 * What went wrong with a login, in our own words: the provider's text is anybody's, and an error of the library may hold the answer
 * with its tokens, so neither gets any further. The ToolError's `details.reason` is short and safe to log.
 */
export function explainLoginFailure(error: unknown): ToolError {
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError)
    return explainRefusal(error.error)
  const code = error instanceof ClientError ? (error.code ?? 'unknown') : null
  if (code === null || NO_ANSWER.has(code) || isOwn(error)) return explainUnavailable(error)
  return failed("The identity provider's answer does not belong to this login.", code)
}

/** As explainLoginFailure, for what went wrong before anybody could log in. */
export function explainUnavailable(error: unknown): ToolError {
  if (error instanceof ToolError) return error
  if (isOwn(error)) return error.cause
  return unavailable(error instanceof ClientError ? (error.code ?? 'unknown') : networkReason(error))
}

/** The library wraps what the bounded fetch throws. */
const isOwn = (error: unknown): error is ClientError & { cause: ToolError } =>
  error instanceof ClientError && error.cause instanceof ToolError

/** The operating system's word for it, such as ECONNREFUSED. */
function networkReason(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  return typeof cause?.code === 'string' ? cause.code : 'network'
}

function explainRefusal(named: string): ToolError {
  const error = KNOWN_ERRORS.has(named) ? named : 'unknown'
  if (PASSING.has(error)) return unavailable(error)
  if (error === 'access_denied') return failed('The login was refused or cancelled at the identity provider.', error)
  if (error === 'invalid_grant') return failed('This login was already used, or took too long.', error)
  return failed(`The identity provider did not accept the login request (${error}).`, error)
}

const unavailable = (reason: string) =>
  new ToolError(
    'login_unavailable',
    'The identity provider does not answer as it should, so nobody can log in now.',
    { reason },
    { hint: 'Nothing was changed. Try again in a minute.' },
  )

const failed = (message: string, reason: string) =>
  new ToolError('login_failed', message, { reason }, { hint: OPERATOR_HINT })
