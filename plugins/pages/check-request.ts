import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'

/**
 * Returns true if an Accept header asks for HTML. The header must name HTML itself, as browsers do; programs that
 * accept anything do not name it. A quality of 0 refuses the type (RFC 9110, 12.5.1).
 */
export const asksForHtml = (accept: string | undefined): boolean => names(accept, 'text/html')

/** Returns true if an Accept header asks for JSON and not for HTML. */
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
 * Refuses a form that another page has sent. The origin guard permits every origin of this server, including other
 * ports on the same machine. A form, however, must come from exactly the origin to which it is sent: the public origin,
 * or the host that the request names with the same scheme, or with plain http on loopback, for access that bypasses a
 * proxy. Programs send neither `Origin` nor `Sec-Fetch-Site`.
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

/** The field with the CSRF token in every form. No tool has an argument with this name. */
export const CSRF_FIELD = '_csrf'

/** Matches an approval's id: 256 bits in base64url. */
const APPROVAL_ID = /^[\w-]{43}$/

/** Returns true if a text has the form of an approval's id. */
export const isApprovalId = (text: string): boolean => APPROVAL_ID.test(text)

/**
 * Returns the value if it is a page of this server to which a login may return; returns undefined for any other value.
 */
export function readOwnPage(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const [, first, second, ...rest] = value.split('/')
  const isOwn = first === 'approve' && rest.length === 0 && (second === undefined || isApprovalId(second))
  return isOwn && value.startsWith('/') ? value : undefined
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export type Method = (typeof METHODS)[number]

/** The possible lists of methods that a path accepts. All other methods are answered with 405 (RFC 9110, 15.5.6). */
export const READ: readonly Method[] = ['GET', 'HEAD']
export const POST: readonly Method[] = ['POST']
