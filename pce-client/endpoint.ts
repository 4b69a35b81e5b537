import { PceError, PceIntegerError } from './errors.js'
import { KINDS, type Kind } from './kinds.js'
import type { PceAddress } from './settings.js'
import type { ReferenceLike, RequestOptions } from './types.js'
import type { PolicyVersionSelector } from '../schemas/common.js'

/** The URL of a request, and its path as messages and logs show it. */
export interface ResolvedEndpoint {
  url: string
  /** The path of the request below `/api/<version>`, without the query. */
  path: string
}

/**
 * Turns an endpoint into a URL of this PCE (P1, P3): removes leading slashes, replaces `//` with `/`, and adds the
 * prefix `orgs/<id>/` unless the endpoint already has one or `includeOrg` is false.
 *
 * @throws {PceError} `invalid_href` for an endpoint that could lead outside the API: another origin, dot segments in
 *   any encoding, backslashes, control characters, or half a surrogate pair (which URL parsers replace with another
 *   character). Endpoints may come from callers, and a request to a path outside the API would have other effects than
 *   intended.
 */
export function resolveEndpoint(
  address: PceAddress,
  endpoint: string,
  includeOrg: boolean,
  params: RequestOptions['params'] = {},
): ResolvedEndpoint {
  const queryAt = endpoint.indexOf('?')
  const rawPath = queryAt === -1 ? endpoint : endpoint.slice(0, queryAt)
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(rawPath) || isUnsafePath(rawPath) || /\p{Surrogate}/u.test(endpoint)) {
    throw new PceError('invalid_href', `not a PCE endpoint: ${JSON.stringify(endpoint.slice(0, 200))}`)
  }
  let path = rawPath.replace(/\/{2,}/g, '/').replace(/^\//, '')
  if (includeOrg && !/^orgs\//.test(path)) path = `orgs/${address.orgId}/${path}`

  const query = [queryAt === -1 ? '' : endpoint.slice(queryAt + 1), encodeParams(params)].filter(Boolean).join('&')
  const url = `${address.origin}/api/${address.version}/${path}${query === '' ? '' : `?${query}`}`
  return { url: encodeStrays(url), path: `/${path}` }
}

/**
 * Returns the endpoint that a `Location`, `result` or href in an answer refers to (P41).
 *
 * @throws {PceError} `invalid_response` when the endpoint is on another origin, because an answer must never make the
 *   client send its credentials to another host.
 */
export function endpointOfLocation(address: PceAddress, location: string): string {
  const base = `/api/${address.version}`
  const url = URL.canParse(location, address.origin) ? new URL(location, address.origin) : undefined
  if (url === undefined || url.origin !== new URL(address.origin).origin) {
    throw new PceError('invalid_response', 'the PCE pointed to another server; its address was not followed')
  }
  const path = url.pathname.startsWith(`${base}/`) ? url.pathname.slice(base.length) : url.pathname
  return path + url.search
}

/**
 * Encodes query parameters. Lists are sent as JSON (P8), undefined values are left out, and brackets and blanks are
 * percent-encoded.
 */
function encodeParams(params: NonNullable<RequestOptions['params']>): string {
  return Object.entries(params)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => {
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      try {
        return `${encodeURIComponent(name)}=${encodeURIComponent(text)}`
      } catch (cause) {
        // Half a surrogate pair is rejected, because `encodeURIComponent` cannot encode it.
        throw new PceError('invalid_argument', `the parameter ${JSON.stringify(name)} is not valid Unicode text`, {
          cause,
        })
      }
    })
    .join('&')
}

/**
 * Percent-encodes every `#`, and every `%` that does not begin an escape, because an id in the path may be a name that
 * contains these characters (P45). The URL parser encodes blanks itself.
 */
function encodeStrays(url: string): string {
  return url.replaceAll('#', '%23').replace(/%(?![0-9a-f]{2})/gi, '%25')
}

/**
 * Returns true if URL parsers might turn the path into another one: they drop tabs and newlines, read `\` as `/`, and
 * resolve `..` even when it is encoded. Proxies in front of a PCE may decode a slash before they resolve dot segments,
 * so an encoded slash ends a segment too.
 */
function isUnsafePath(path: string): boolean {
  // eslint-disable-next-line no-control-regex -- the pattern looks for control characters on purpose
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return true
  return path.split(/\/|%2f|%5c/i).some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}

/**
 * Pattern for one path segment. It excludes `.` and `..`, even if encoded, and segments with a blank. It also excludes
 * segments with an encoded slash or backslash, because a server could split such a segment in two.
 */
const ID = String.raw`(?!(?:\.|%2[eE]){1,2}(?:/|$))(?:[^/?#%\\\s]|%(?!2[fF]|5[cC])[0-9a-fA-F]{2})+`
const PVERSION = '(?:draft|active|\\d+)'
// eslint-disable-next-line no-restricted-syntax -- built from the constant above
const WHOLE_PVERSION = new RegExp(`^${PVERSION}$`)

/**
 * Returns the href of a reference, which may be the href itself, a `{href}` or a whole object. @throws {PceError}
 * `invalid_href` if the reference has no href.
 */
export function hrefOf(reference: ReferenceLike): string {
  const href: unknown = typeof reference === 'string' ? reference : (reference as { href?: unknown } | null)?.href
  if (typeof href === 'string' && href !== '') return href
  throw new PceError('invalid_href', 'expected an href, or an object that has one')
}

/**
 * Returns the href of a reference if the href belongs to the given kind of object and to the given organisation.
 *
 * @throws {PceError} `invalid_href` otherwise, because the call would act on an object that the caller does not mean.
 */
export function checkHref(kind: Kind, orgId: string, reference: ReferenceLike): string {
  if (kind.single === true && isWithoutHref(reference)) return inVersion(placeOf(kind, orgId), 'draft')
  const href = hrefOf(reference)
  if (hrefPattern(kind, orgId).test(href)) return href
  const shape = placeOf(kind, orgId).replace('{pversion}', 'draft') + (hasItems(kind) ? '/<id>' : '')
  throw new PceError(
    'invalid_href',
    `${JSON.stringify(href.slice(0, 200))} is not an href of ${kind.specName} here (like ${shape})`,
  )
}

/**
 * Returns the href to which a write is sent. Only the draft of a versioned object can be written; its id is the same in
 * the draft and the active version (P4).
 *
 * @throws {PceError} `invalid_href` for a numbered version, because past versions cannot be changed.
 */
export function draftHref(kind: Kind, href: string): string {
  if (!kind.versioned) return href
  if (/\/sec_policy\/\d+\//.test(href)) {
    throw new PceError('invalid_href', `${href} belongs to a past policy version, which cannot be written`)
  }
  return inVersion(href, 'draft')
}

/**
 * Returns the href of the same object in another policy version.
 *
 * @throws {PceIntegerError} for an invalid number, {PceError} for any other invalid version.
 */
export function inVersion(href: string, policyVersion: PolicyVersionSelector): string {
  if (!WHOLE_PVERSION.test(String(policyVersion))) {
    const text = 'a policy version is draft, active or an integer of 0 or more'
    throw typeof policyVersion === 'number' ? new PceIntegerError(text) : new PceError('invalid_argument', text)
  }
  return href.replace(/\/sec_policy\/(?:draft|active|\d+|\{pversion\})(?=\/|$)/, `/sec_policy/${policyVersion}`)
}

/**
 * Returns the endpoint of the collection that contains the objects of a kind.
 *
 * @throws {PceError} if a required parent is missing or wrong, or if a parent is given although the kind needs none.
 */
export function collectionOf(
  kind: Kind,
  orgId: string,
  policyVersion: PolicyVersionSelector,
  parent: ReferenceLike | null | undefined,
): string {
  if (kind.parent === undefined) {
    if (parent === undefined || parent === null) return inVersion(placeOf(kind, orgId), policyVersion)
    throw new PceError('invalid_argument', `${kind.specName} do not live under another object: give no parent`)
  }
  const parentKind: Kind = KINDS[kind.parent as keyof typeof KINDS]
  if (parent === undefined || parent === null) {
    throw new PceError(
      'invalid_argument',
      `${kind.specName} live under an object of ${parentKind.specName}: give it as parent`,
    )
  }
  const parentHref = checkHref(parentKind, orgId, parent)
  const segment = kind.path.slice(kind.path.lastIndexOf('/') + 1)
  return `${inVersion(parentHref, policyVersion)}/${segment}`
}

/** Returns true if each object of the kind has its own path below that of the collection. */
export function hasItems(kind: Kind): boolean {
  return kind.itemVerbs.length > 0
}

function isWithoutHref(reference: unknown): boolean {
  return typeof reference === 'object' && reference !== null && (reference as { href?: unknown }).href === undefined
}

function placeOf(kind: Kind, orgId: string): string {
  return kind.path.replace('{org_id}', orgId)
}

function hrefPattern(kind: Kind, orgId: string): RegExp {
  const path = placeOf(kind, orgId).replace('{pversion}', PVERSION).replace('{parent}', ID)
  // In old releases, the href of the single firewall_settings object ends with the id 1.
  const single = kind.versioned ? '(?:/1)?' : ''
  const tail = hasItems(kind) ? `/${ID}` : single
  // eslint-disable-next-line no-restricted-syntax -- the path is of the table of kinds, and the organisation is a number
  return new RegExp(`^${path}${tail}$`)
}
