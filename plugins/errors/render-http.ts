import type { ErrorBody } from '../../schemas/http/error-body.js'
import type { ServiceError } from './convert.js'
import { renderError } from './render-error.js'
import { ERROR_TABLE } from './table.js'

export interface HttpErrorAnswer {
  status: number
  /** Seconds for `Retry-After`, where waiting helps. */
  retryAfter?: number
  body: ErrorBody
}

/** An error as an HTTP answer, for every route that has no error shape of its own. */
export function renderHttpError(error: ServiceError, requestId: string): HttpErrorAnswer {
  const { status } = ERROR_TABLE[error.code]
  return { status, ...retryAfterOf(status, error), body: renderError(error, requestId) }
}

/** As long as the error itself says (`retry_after`). Otherwise a second: overload and shutdown pass quickly. */
function retryAfterOf(status: number, { details }: ServiceError): { retryAfter?: number } {
  if (status !== 503 && status !== 429) return {}
  const { retry_after: seconds } = details
  return { retryAfter: typeof seconds === 'number' && seconds >= 1 ? Math.ceil(seconds) : 1 }
}
