import { PceApiError, PceError } from '../../pce-client/index.js'
import { ToolError, type ErrorCode, type ErrorDetails } from '../../schemas/errors.js'

/**
 * A failure with extra facts, such as what was written before it. It keeps the PCE's status, token and message. Errors with
 * nothing to add are left to the one converter.
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
 * What the PCE itself said of a failure: `{http_status, token, pce_message, retry_after?}` (seconds); empty when it did not
 * answer.
 */
export function factsOf(error: PceError): ErrorDetails {
  if (!(error instanceof PceApiError)) return {}
  const { status, retryAfter } = error
  const [said] = error.errors
  const facts = { http_status: status, token: said?.token ?? '', pce_message: said?.message ?? '' }
  return { ...facts, ...(retryAfter !== null && { retry_after: retryAfter }) }
}

/**
 * Why something failed that is not the failure being reported: the PCE client's message, or fixed text for anything that may not
 * be shown.
 */
export function reasonOf(error: unknown): string {
  return error instanceof PceError || error instanceof ToolError ? error.message : 'It failed in the server.'
}

/** True when the failed write may have been carried out anyway. */
export function mayHaveHappened(error: unknown): boolean {
  return error instanceof PceError && error.code === 'outcome_unknown'
}

/** The code a failure of the PCE client has in answers. */
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
    case 'invalid_response':
    case 'traffic_query_failed':
    case 'traffic_query_timeout':
      return error.code
    default:
      return 'pce_error'
  }
}
