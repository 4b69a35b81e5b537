import type { AuditEntry } from '../../schemas/audit.js'
import type { Owner, Role } from '../../schemas/caller.js'
import { type ErrorCode, ToolError } from '../../schemas/errors.js'
import { convertHttp, type ServiceError } from '../errors/convert.js'
import { type HttpErrorAnswer, renderHttpError } from '../errors/render-errors.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { PceMode } from '../../schemas/config.js'
import { FORMS } from './setup/forms.js'
import { renderMessagePage } from './layout/page-layout.js'

export interface Refusal extends HttpErrorAnswer {
  error: ServiceError
  /** True if the error is logged with its cause, because the operator must fix it. */
  isOurFault: boolean
}

/** Builds the answer for any error that occurs while a request for a page is handled. */
export function convertRefusal(thrown: unknown, requestId: string): Refusal {
  return describeError(convertHttp(explainLibraryError(thrown)), requestId)
}

/** Builds the answer for the error of a tool call. */
export function describeError(error: ServiceError, requestId: string): Refusal {
  return { error, ...renderHttpError(error, requestId), isOurFault: ERROR_TABLE[error.code].level === 'error' }
}

function explainLibraryError(thrown: unknown): unknown {
  const { code, statusCode } = thrown as { code?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && code.startsWith('FST_CSRF_')) {
    return new ToolError('form_expired', 'This form has expired or did not come from this page.')
  }
  if (statusCode === 415) return wrongType()
  return thrown
}

export const wrongType = () =>
  new ToolError(
    'unsupported_media_type',
    'A form must be sent as application/x-www-form-urlencoded, without Content-Encoding.',
  )

export const unauthorized = () =>
  new ToolError('unauthorized', 'You are not logged in, or your login has expired. It lasts 15 minutes.')

/** Sets the status and the header `Retry-After` of a refusal on the reply. */
export function announce<Reply extends { code(status: number): Reply; header(name: string, value: unknown): Reply }>(
  { status, retryAfter }: Refusal,
  reply: Reply,
): Reply {
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.code(status)
}

/** The facts that the audit log records about a refused form. They contain nothing that was entered into the form. */
export interface RefusedForm {
  reason: ErrorCode
  /** The path to which the form was sent, without the query and without the id of an approval request. */
  route: string
  mode: PceMode
  requestId: string
  /** The name of the browser in the User-Agent header. */
  client?: string
  clientAddress: string | null
}

/** Builds the audit entry of a form that led to no tool call (D25). `now` is in milliseconds since the epoch. */
export function describeRefusedForm(
  form: RefusedForm,
  { iss, sub }: Owner,
  role: Role | null,
  now: number,
): AuditEntry {
  const { reason, route, mode, requestId, client, clientAddress } = form
  const tool = FORMS.find(({ path }) => path === route)?.tool
  return {
    ts: new Date(now).toISOString(),
    phase: 'decision',
    decision: 'denied',
    reason,
    ...(tool !== undefined && { tool }),
    route,
    role,
    iss,
    sub,
    request_id: requestId,
    mode,
    transport: 'http',
    ...(client !== undefined && { client }),
    ...(clientAddress !== null && { client_address: clientAddress }),
  }
}

const TITLES: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'Please log in',
  form_expired: 'This form has expired',
  login_failed: 'The login did not succeed',
  login_unavailable: 'Nobody can log in right now',
  keys_unavailable: 'Nobody can log in right now',
  rate_limited: 'Too many attempts',
  overloaded: 'The server is busy',
  host_not_allowed: 'Wrong address',
  origin_not_allowed: 'Wrong address',
  not_found: 'There is no such request',
  forbidden: 'This is not allowed',
  approval_expired: 'It is too late to decide',
  confirm_unavailable: 'Nothing can be decided right now',
  audit_unavailable: 'Nothing can be decided right now',
}

/**
 * Renders the page that is shown when the request for another page is refused. `back` is the page to which it links.
 * `canLogIn` is true if this server has a browser login.
 */
export function renderRefusalPage(
  error: ServiceError,
  { requestId, back, canLogIn }: { requestId: string; back: string; canLogIn: boolean },
): string {
  const { code, message, hint } = error
  const needsLogin = code === 'unauthorized' || code === 'login_failed'
  const withoutLogin = 'This server has no browser login: send an access token in the Authorization header.'
  return renderMessagePage({
    title: TITLES[code] ?? 'This did not work',
    text: message,
    ...(needsLogin && !canLogIn ? { hint: withoutLogin } : hint !== undefined && { hint }),
    code,
    requestId,
    ...((canLogIn || !needsLogin) && {
      link: { href: back, label: needsLogin ? 'Log in' : 'Back to the page' },
    }),
  })
}
