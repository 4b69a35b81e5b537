import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'

/**
 * Whether an Accept header asks for HTML. The header must name the type itself: browsers do so, while programs that
 * accept anything do not. A quality of 0 refuses the type (RFC 9110, 12.5.1).
 */
export const asksForHtml = (accept: string | undefined): boolean => names(accept, 'text/html')

/** Whether an Accept header asks for JSON and not for HTML. */
export const asksForJson = (accept: string | undefined): boolean =>
  names(accept, 'application/json') && !asksForHtml(accept)

function names(accept: string | undefined, type: string): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

const OWN_SITES = new Set(['same-origin', 'none'])
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

/**
 * Refuses a form that another page has sent. The origin guard permits every origin that this server answers to,
 * including other ports on the same machine. A form, however, must come from exactly the origin that it is sent to: the
 * public origin, or the same scheme at the host that the request names, or plain http on loopback, for access that
 * bypasses a proxy. Programs send neither `Origin` nor `Sec-Fetch-Site`.
 *
 * Throws ToolError `form_expired`.
 */
export function checkFormOrigin(headers: IncomingHttpHeaders, publicUrl: string): void {
  const { origin, host = '', 'sec-fetch-site': site } = headers
  const { origin: own, protocol } = new URL(publicUrl)
  const isForeignSite = site !== undefined && !OWN_SITES.has(String(site))
  const origins = [own, `${protocol}//${host}`, ...(LOOPBACK.test(host) ? [`http://${host}`] : [])]
  const isForeignOrigin = origin !== undefined && !origins.includes(origin)
  if (isForeignSite || isForeignOrigin) throw new ToolError('form_expired', 'This form was sent from another page.')
}

/** The field of every form that carries the CSRF token; no tool has an argument with this name. */
export const CSRF_FIELD = '_csrf'

/** Matches an approval's id: 256 bits in base64url. */
const APPROVAL_ID = /^[\w-]{43}$/

/** Whether a text has the form of an approval's id. */
export const isApprovalId = (text: string): boolean => APPROVAL_ID.test(text)

/** Returns the value if it is a page of this server to which a login may return, and undefined for anything else. */
export function readOwnPage(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const [, first, second, ...rest] = value.split('/')
  const isOwn = first === 'approve' && rest.length === 0 && (second === undefined || isApprovalId(second))
  return isOwn && value.startsWith('/') ? value : undefined
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export type Method = (typeof METHODS)[number]

/** The lists of methods that a path may accept. All other methods are answered with 405 (RFC 9110, 15.5.6). */
export const READ: readonly Method[] = ['GET', 'HEAD']
export const POST: readonly Method[] = ['POST']
