import type { IncomingHttpHeaders } from 'node:http'
import { isIP, isIPv6 } from 'node:net'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

interface OriginGuardOptions {
  host: string
  publicUrl?: string
  allowedHosts: readonly string[]
}

/**
 * Checks the Host and Origin headers of every request to the routes that are registered beside this plugin. This
 * happens before authorization and before the body is read.
 */
export default fp<OriginGuardOptions>(
  (app, options, done) => {
    const allowed = rememberHosts(allowedHosts(options))
    app.addHook('onRequest', (request, _reply, next) => {
      checkOrigin(request.raw as typeof request.raw & { url: string }, allowed)
      next()
    })
    done()
  },
  { name: 'origin-guard', dependencies: ['errors'] },
)

/**
 * Refuses requests that a foreign web page could send to a server on its visitor's machine or network (DNS rebinding;
 * MCP transports, "MUST validate the Origin header"). The Host header must name one of this server's hosts. So must the
 * request target if it is an absolute URL, because it takes precedence over the header (RFC 9112, 3.2.2). Origin may be
 * absent, because only browsers send it. X-Forwarded-Host is ignored.
 *
 * Throws ToolError `bad_request` if there is no Host header (RFC 9112, 3.2), `host_not_allowed` or
 * `origin_not_allowed`.
 */
function checkOrigin(
  request: { url: string; headers: IncomingHttpHeaders },
  allowed: ReturnType<typeof rememberHosts>,
): void {
  const { host: named, origin } = request.headers
  if (named === undefined) throw new ToolError('bad_request', 'The request has no Host.')
  const isAbsolute = !request.url.startsWith('/') && request.url !== '*'
  const target = isAbsolute ? targetHostOf(request.url) : undefined
  if (!allowed.allowsAuthority(named) || target === null || (target !== undefined && !allowed.allows(target))) {
    throw new ToolError('host_not_allowed', 'This server does not answer for the Host of this request.')
  }
  if (origin === undefined) return
  const originHost = originHostOf(origin)
  if (originHost === null || !allowed.allows(originHost)) {
    throw new ToolError('origin_not_allowed', 'This server does not accept the Origin of this request.')
  }
}

/** Maximum number of remembered Host values. One client sends the same value with each request. */
const MOST_SPELLINGS = 100

/**
 * Creates a version of `allowed` that remembers permitted values of the Host header, so that each value is parsed only
 * once.
 */
function rememberHosts(allowed: AllowedHosts): AllowedHosts & { allowsAuthority(authority: string): boolean } {
  const known = new Set<string>()
  return {
    allows: (host) => allowed.allows(host),
    allowsAuthority(authority) {
      if (known.has(authority)) return true
      const host = hostnameOf(authority)
      if (host === null || !allowed.allows(host)) return false
      if (known.size < MOST_SPELLINGS) known.add(authority)
      return true
    },
  }
}

const targetHostOf = (url: string) => (URL.canParse(url) ? hostnameOf(new URL(url).host) : null)

interface AllowedHosts {
  /**
   * Returns true if a Host header, a request target or an Origin may name this host. The host must be in the form that
   * `hostnameOf` returns.
   */
  allows(hostname: string): boolean
}

const LOOPBACK = ['localhost', '127.0.0.1', '::1']
const WILDCARDS = new Set(['0.0.0.0', '::'])

/**
 * Collects the names of this server: loopback names, the bind host, the host of the public URL, and the hosts that the
 * operator listed (D7). Ports are ignored, because a proxy or a container may map them.
 *
 * A server bound to a wildcard address has all addresses of its machine, so any IP literal is permitted too. This is
 * safe, because an attack by DNS rebinding always uses a name, and names must be listed in any case.
 */
function allowedHosts(options: { host: string; publicUrl?: string; allowedHosts: readonly string[] }): AllowedHosts {
  const names = new Set(LOOPBACK)
  const bindHost = hostnameOf(options.host)
  if (bindHost !== null) names.add(bindHost)
  if (options.publicUrl !== undefined) names.add(hostnameOf(new URL(options.publicUrl).host) ?? '')
  for (const entry of options.allowedHosts) names.add(hostnameOf(entry) ?? '')
  names.delete('')
  const anyAddress = bindHost !== null && WILDCARDS.has(bindHost)
  return { allows: (hostname) => names.has(hostname) || (anyAddress && isIP(hostname) !== 0) }
}

const AUTHORITY = /^(?:\[([0-9a-f:.]+)\]|([^\s:/?#@[\]\\]+))(?::(\d{1,5}))?$/i

/**
 * Returns the host in `host`, `host:port`, `[v6]` or `[v6]:port`, in lower case and without brackets; an IPv6 address
 * without brackets is accepted too. Returns null for anything else (userinfo, paths, blanks), because a host that needs
 * interpretation is refused.
 */
function hostnameOf(authority: string): string | null {
  if (isIPv6(authority)) return authority.toLowerCase()
  const match = AUTHORITY.exec(authority)
  return match === null ? null : (match[1] ?? match[2]!).toLowerCase()
}

/**
 * Returns the host of an `Origin` header, or null if it is not the serialisation of an http(s) origin (RFC 6454, 6.2).
 */
function originHostOf(origin: string): string | null {
  const url = URL.canParse(origin) ? new URL(origin) : null
  if (url === null || url.origin !== origin.toLowerCase()) return null
  return url.protocol === 'http:' || url.protocol === 'https:' ? hostnameOf(url.host) : null
}
