import { ToolError } from '../../schemas/errors.js'
import { convertHttp, type ServiceError } from '../errors/convert.js'
import { renderHttpError, type HttpErrorAnswer } from '../errors/render-http.js'
import { ERROR_TABLE } from '../errors/table.js'

export interface Refusal extends HttpErrorAnswer {
  error: ServiceError
  /** Whether the operator should see it in the log with its cause. */
  isOurFault: boolean
}

/** Anything that was thrown on the way of a request to this room, as an answer. */
export function convertRefusal(thrown: unknown, requestId: string): Refusal {
  return describeError(convertHttp(explainLibraryError(thrown)), requestId)
}

/** An error that a tool call came to, as an answer. */
export function describeError(error: ServiceError, requestId: string): Refusal {
  return { error, ...renderHttpError(error, requestId), isOurFault: ERROR_TABLE[error.code].level === 'error' }
}

function explainLibraryError(thrown: unknown): unknown {
  const { code, statusCode } = thrown as { code?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && code.startsWith('FST_CSRF_')) {
    return new ToolError('form_expired', 'This form has expired, or does not come from this page.')
  }
  if (statusCode === 415) return wrongType()
  return thrown
}

export const wrongType = () =>
  new ToolError(
    'unsupported_media_type',
    'A form must come as application/x-www-form-urlencoded, with no Content-Encoding.',
  )

export const unauthorized = () =>
  new ToolError('unauthorized', 'Nobody is logged in here, or the login is over: it lasts 15 minutes.')
