import { PceApiError, PceError } from '../../pce-client/index.js'
import { codeOfUnsent } from '../../schemas/code-of-unsent.js'
import { ToolError, type ErrorCode, type ErrorDetails } from '../../schemas/errors.js'

/**
 * Returns an error with extra details, such as what the call wrote before it failed. The PCE's status, token and
 * message are kept. This function is needed only if there are extra details; the central error converter handles all
 * other errors.
 */
export function withDetails(error: unknown, extra: ErrorDetails, hint?: string): ToolError {
  if (error instanceof ToolError) {
    return new ToolError(
      error.code,
      error.message,
      { ...error.details, ...extra },
      { cause: error, hint: hint ?? error.hint },
    )
  }
  if (!(error instanceof PceError)) {
    return new ToolError('internal', 'The call failed in the server after it had written to the PCE.', extra, {
      cause: error,
      hint,
    })
  }
  return new ToolError(codeOf(error), error.message, { ...factsOf(error), ...extra }, { cause: error, hint })
}

/**
 * Returns the PCE's information about a failure: `{http_status, token, pce_message, retry_after?}`; `retry_after` is in
 * seconds. Returns an empty object if the PCE did not answer.
 */
export function factsOf(error: PceError): ErrorDetails {
  if (!(error instanceof PceApiError)) return {}
  const { status, retryAfter } = error
  const [said] = error.errors
  const facts = { http_status: status, token: said?.token ?? '', pce_message: said?.message ?? '' }
  return { ...facts, ...(retryAfter !== null && { retry_after: retryAfter }) }
}

/**
 * Returns a string that describes an error that occurred in addition to the one being reported. For an error of the PCE
 * client or of a tool, it is the error's message. For any other error it is a fixed string, because the message may
 * contain something that must not be shown.
 */
export function reasonOf(error: unknown): string {
  return error instanceof PceError || error instanceof ToolError ? error.message : 'It failed in the server.'
}

/** Returns true if a write that failed with this error may have been carried out nevertheless. */
export function mayHaveHappened(error: unknown): boolean {
  return error instanceof PceError && error.code === 'outcome_unknown'
}

/** Returns the error code that answers use for an error of the PCE client. */
export function codeOf(error: PceError): ErrorCode {
  switch (error.code) {
    case 'outcome_unknown':
      return 'outcome_unknown'
    case 'unreachable':
    case 'deadline':
      return 'pce_unreachable'
    case 'aborted':
      return 'cancelled'
    case 'body_too_large':
      return 'pce_answer_too_large'
    case 'write_refused':
      return codeOfUnsent(error)
    case 'invalid_response':
    case 'traffic_query_failed':
    case 'traffic_query_timeout':
      return error.code
    default:
      return 'pce_error'
  }
}
