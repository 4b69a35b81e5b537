import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'

/**
 * Returns true if an Accept header asks for HTML. The header must name `text/html`, as the headers of browsers do.
 * Wildcards, which other programs send, do not count, and neither does a type with the quality 0 (RFC 9110, 12.5.1).
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
 * Refuses a form that was sent by a page of another origin. The origin guard permits every origin of this server,
 * including other ports on the same machine, but a form must come from exactly the origin that receives it. This is the
 * public origin, or the host in the Host header with the scheme of the public URL. On a loopback host, plain http is
 * accepted too, because a proxy that adds https may be bypassed there. Requests without `Origin` and `Sec-Fetch-Site`,
 * as programs send them, are not refused here.
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

/** Returns true if a string has the form of an approval's id. */
export const isApprovalId = (text: string): boolean => APPROVAL_ID.test(text)

/**
 * Returns the value if it is the path of a page about approvals of this server, which is where a login may redirect to;
 * otherwise, returns undefined.
 */
export function readOwnPage(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const [, first, second, ...rest] = value.split('/')
  const isOwn =
    first === 'approve' && rest.length === 0 && (second === undefined || second === 'all' || isApprovalId(second))
  return isOwn && value.startsWith('/') ? value : undefined
}

export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export type Method = (typeof METHODS)[number]

/**
 * The methods that a path accepts: either those for reading, or POST, or both. A request with any other method is
 * answered with 405 (RFC 9110, 15.5.6).
 */
export const READ: readonly Method[] = ['GET', 'HEAD']
export const POST: readonly Method[] = ['POST']
