import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'
import type { AllowedHosts } from './allowed-hosts.js'
import { hostnameOf, originHostOf } from './parse-host.js'

/**
 * Refuses what a foreign web page could send to a server on the reader's own machine or network (DNS rebinding; MCP transports,
 * "MUST validate the Origin header"). Host must be one of ours; so must the host of an absolute request target, which outranks it
 * (RFC 9112, 3.2.2); Origin may be absent, since only browsers send it. X-Forwarded-Host says nothing here.
 *
 * Throws ToolError `bad_request` without any Host (RFC 9112, 3.2), `host_not_allowed` or `origin_not_allowed`.
 */
export function checkOrigin(request: { url: string; headers: IncomingHttpHeaders }, allowed: AllowedHosts): void {
  const { host: named, origin } = request.headers
  if (named === undefined) throw new ToolError('bad_request', 'The request has no Host.')
  const hosts = [hostnameOf(named)]
  if (!request.url.startsWith('/') && request.url !== '*') hosts.push(targetHostOf(request.url))
  if (hosts.some((host) => host === null || !allowed.allows(host))) {
    throw new ToolError('host_not_allowed', 'The Host of this request is not one of this server.')
  }
  if (origin === undefined) return
  const originHost = originHostOf(origin)
  if (originHost === null || !allowed.allows(originHost)) {
    throw new ToolError('origin_not_allowed', 'The Origin of this request is not one of this server.')
  }
}

const targetHostOf = (url: string) => (URL.canParse(url) ? hostnameOf(new URL(url).host) : null)
