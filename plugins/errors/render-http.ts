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
  return { status, ...retryAfterOf(status), body: renderError(error, requestId) }
}

/** Overload and shutdown pass quickly: a second is enough for the next try. */
export const retryAfterOf = (status: number): { retryAfter?: number } =>
  status === 503 || status === 429 ? { retryAfter: 1 } : {}
