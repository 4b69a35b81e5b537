import type { ErrorBody } from '../../schemas/http/error-body.js'
import type { ServiceError } from './convert.js'

/** The body every error has on the wire: details at the top level, after the code, and unable to displace it. */
export function renderError(error: ServiceError, requestId: string): ErrorBody {
  const head = {
    error: error.code,
    message: error.message,
    ...(error.hint !== undefined && { hint: error.hint }),
    request_id: requestId,
  }
  return { ...head, ...error.details, ...head }
}
