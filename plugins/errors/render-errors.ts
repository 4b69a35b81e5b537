import type { ErrorBody } from '../../schemas/errors.js'
import type { ServiceError } from './convert.js'
import { ERROR_TABLE } from './table.js'

/**
 * Builds the body of an error answer. The fixed members come first. The details follow them at the top level and cannot
 * replace them.
 */
export function renderError(error: ServiceError, requestId: string): ErrorBody {
  const head = {
    error: error.code,
    message: error.message,
    ...(error.hint !== undefined && { hint: error.hint }),
    request_id: requestId,
  }
  return { ...head, ...error.details, ...head }
}

export interface HttpErrorAnswer {
  status: number
  /** The value of the header `Retry-After`, in seconds. Present only for the statuses 429 and 503. */
  retryAfter?: number
  body: ErrorBody
}

/** Renders an error as an HTTP answer, for routes without an error format of their own. */
export function renderHttpError(error: ServiceError, requestId: string): HttpErrorAnswer {
  const { status } = ERROR_TABLE[error.code]
  return { status, ...retryAfterOf(status, error), body: renderError(error, requestId) }
}

/**
 * Returns the waiting time for the statuses 429 and 503, in seconds: `retry_after` of the error or, if there is none,
 * one second, because overload and shutdown pass quickly. Returns nothing for other statuses.
 */
function retryAfterOf(status: number, { details }: ServiceError): { retryAfter?: number } {
  if (status !== 503 && status !== 429) return {}
  const { retry_after: seconds } = details
  return { retryAfter: typeof seconds === 'number' && seconds >= 1 ? Math.ceil(seconds) : 1 }
}

/** A failed tool call in the form that MCP requires. */
type McpErrorResult = {
  isError: true
  content: [{ type: 'text'; text: string }]
}

/**
 * Renders the failure of a tool as a result, so that the model can read what went wrong. The result has no
 * structuredContent, because clients check structuredContent against the tool's outputSchema even if isError is set.
 */
export function renderMcpError(error: ServiceError, requestId: string): McpErrorResult {
  return { isError: true, content: [{ type: 'text', text: JSON.stringify(renderError(error, requestId)) }] }
}
