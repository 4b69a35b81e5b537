import { isIP } from 'node:net'
import { hostnameOf } from './parse-host.js'

export interface AllowedHosts {
  /** Whether a Host header, a request target or an Origin may name this host (as `hostnameOf` returns it). */
  allows(hostname: string): boolean
}

const LOOPBACK = ['localhost', '127.0.0.1', '::1']
const WILDCARDS = new Set(['0.0.0.0', '::'])

/**
 * The hosts this server answers for: loopback names, the bind host, the host of the public URL and what the operator listed (D7).
 * Ports do not count, since a proxy or a container may map them.
 *
 * Bound to a wildcard address, the server has as many addresses as the machine, so any IP literal is allowed too: a page that
 * rebinds DNS always comes with a name. Names must still be listed.
 */
export function allowedHosts(options: {
  host: string
  publicUrl?: string
  allowedHosts: readonly string[]
}): AllowedHosts {
  const names = new Set(LOOPBACK)
  const bindHost = hostnameOf(options.host)
  if (bindHost !== null) names.add(bindHost)
  if (options.publicUrl !== undefined) names.add(hostnameOf(new URL(options.publicUrl).host) ?? '')
  for (const entry of options.allowedHosts) names.add(hostnameOf(entry) ?? '')
  names.delete('')
  const anyAddress = bindHost !== null && WILDCARDS.has(bindHost)
  return { allows: (hostname) => names.has(hostname) || (anyAddress && isIP(hostname) !== 0) }
}
