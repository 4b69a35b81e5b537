import { ToolError } from '../../schemas/errors.js'
import type { InvalidTokenError } from './invalid-token.js'

const MESSAGES = {
  missing: 'This needs an access token: log in at the authorization server that WWW-Authenticate leads to.',
  invalid_token: 'The access token is not valid.',
  insufficient_scope: 'The access token lacks the scope that this server requires.',
}

/** A refused token as the error that every route can render: ToolError `unauthorized {reason}`. */
export function explainRefusal(refusal: InvalidTokenError): ToolError {
  const { error, reason } = refusal
  return new ToolError('unauthorized', MESSAGES[error ?? 'missing'], { reason }, { cause: refusal })
}
