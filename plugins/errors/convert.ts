import { PceApiError, PceError } from '../../pce-client/index.js'
import { codeOfUnsent } from '../../schemas/code-of-unsent.js'
import {
  connectionHint,
  ToolError,
  type ErrorCode,
  type ErrorDetails,
  type FormQuestion,
} from '../../schemas/errors.js'
import { ERROR_TABLE } from './table.js'

/**
 * An error of any origin, in the form that this server uses. It contains no secrets, and no text that is not meant for
 * the caller.
 */
export interface ServiceError {
  code: ErrorCode
  message: string
  hint?: string
  details: ErrorDetails
  /**
   * The question for the person at the client, which a transport may be able to ask. It is never part of a rendered
   * error.
   */
  ask?: FormQuestion
}

/**
 * This server's error code for each code of the PCE client. Two kinds of codes are missing: `api_error`, which
 * `convertPceError` turns into `pce_error`, and the codes that mean a fault of this server, which become `internal`.
 */
const PCE_CODES: Partial<Record<PceError['code'], ErrorCode>> = {
  outcome_unknown: 'outcome_unknown',
  unreachable: 'pce_unreachable',
  deadline: 'pce_unreachable',
  aborted: 'cancelled',
  job_failed: 'pce_error',
  traffic_query_failed: 'traffic_query_failed',
  traffic_query_timeout: 'traffic_query_timeout',
  not_found: 'not_found',
  ambiguous_name: 'ambiguous_name',
  invalid_href: 'invalid_href',
  body_too_large: 'pce_answer_too_large',
  invalid_response: 'invalid_response',
}

/** The codes for requests that were not sent because the caller's access was revoked, or could not be checked. */
const ACCESS_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['unauthorized', 'state_unavailable'])
const NOTHING_MORE = 'What the call sent before this request stays as it is.'

/**
 * The hints for errors of the PCE, by HTTP status. There are none for 404 and 406, because the PCE's own token and
 * message explain these.
 */
const PCE_STATUS_HINTS: Record<number, string> = {
  401: 'The PCE does not accept the API key and secret.',
  403: 'The PCE account of this server lacks the permission for this.',
  429: 'The PCE is limiting the request rate: wait before the next call.',
}

/** The error codes for errors that an HTTP library throws while it reads a request, by HTTP status. */
const HTTP_STATUS_CODES: Record<number, ErrorCode> = {
  400: 'bad_request',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  413: 'payload_too_large',
  414: 'bad_request',
  415: 'unsupported_media_type',
  431: 'headers_too_large',
}

/**
 * Converts any thrown value to a ServiceError. Errors that tools and gates throw deliberately (ToolError) keep their
 * code and text. Errors of the PCE client become `pce_error` with `http_status`, `token` and `pce_message`, or a more
 * specific code. An abort becomes `cancelled`. Everything else becomes `internal` with a fixed text, because its
 * message was not written for the caller.
 */
export function convert(thrown: unknown): ServiceError {
  if (thrown instanceof ToolError) {
    const { code, message, details, hint, ask } = thrown
    const error = withHint(code, message, details, hint)
    return ask === undefined ? error : { ...error, ask }
  }
  if (thrown instanceof PceError) return convertPceError(thrown)
  if (thrown instanceof Error && thrown.name === 'AbortError') return plain('cancelled')
  return plain('internal')
}

/**
 * Converts errors that the HTTP framework throws before a route runs. Their `statusCode` (400..499) says what is wrong
 * with the request; the message is this server's own. Other errors are converted as by `convert`. Never throws.
 */
export function convertHttp(thrown: unknown): ServiceError {
  const status = thrown instanceof Error && 'statusCode' in thrown ? Number(thrown.statusCode) : 0
  const code = HTTP_STATUS_CODES[status]
  return code === undefined ? convert(thrown) : plain(code)
}

const plain = (code: ErrorCode) => withHint(code, ERROR_TABLE[code].message, {})

function convertPceError(error: PceError): ServiceError {
  if (error.code === 'write_refused') {
    // The hints of these codes say that nothing was written. That is true, because these calls are refused as a whole.
    const unsent = codeOfUnsent(error)
    return withHint(unsent, error.message, ACCESS_CODES.has(unsent) ? { reason: error.reason } : {}, NOTHING_MORE)
  }
  const code: ErrorCode | undefined = error.code === 'api_error' ? 'pce_error' : PCE_CODES[error.code]
  if (code === undefined) return plain('internal')
  const details: ErrorDetails = {}
  if (error.reason !== undefined) details.reason = error.reason
  if (error.hrefs !== undefined) details.hrefs = error.hrefs
  let hint = connectionHint(error)
  if (error instanceof PceApiError) {
    details.http_status = error.status
    details.token = error.errors[0]?.token ?? ''
    details.pce_message = error.errors[0]?.message ?? ''
    if (error.errors.length > 1) details.pce_errors = error.errors
    if (error.retryAfter !== null) details.retry_after = error.retryAfter
    hint ??= PCE_STATUS_HINTS[error.status]
  }
  return withHint(code, error.message || ERROR_TABLE[code].message, details, hint)
}

function withHint(
  code: ErrorCode,
  message: string,
  details: ErrorDetails,
  hint = ERROR_TABLE[code].hint,
): ServiceError {
  return { code, message, details, ...(hint !== undefined && { hint }) }
}
