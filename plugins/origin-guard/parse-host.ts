import { isIPv6 } from 'node:net'

const AUTHORITY = /^(?:\[([0-9a-f:.]+)\]|([^\s:/?#@[\]\\]+))(?::(\d{1,5}))?$/i

/**
 * The host of `host`, `host:port`, `[v6]` or `[v6]:port`, in lower case and without brackets; a bare IPv6 address is taken too.
 * Null for anything else (userinfo, paths, blanks): a host that needs interpretation is not one of ours.
 */
export function hostnameOf(authority: string): string | null {
  if (isIPv6(authority)) return authority.toLowerCase()
  const match = AUTHORITY.exec(authority)
  return match === null ? null : (match[1] ?? match[2]!).toLowerCase()
}

/** The host of an `Origin` header, or null when it is not the serialisation of an http(s) origin (RFC 6454, 6.2). */
export function originHostOf(origin: string): string | null {
  const url = URL.canParse(origin) ? new URL(origin) : null
  if (url === null || url.origin !== origin.toLowerCase()) return null
  return url.protocol === 'http:' || url.protocol === 'https:' ? hostnameOf(url.host) : null
}
