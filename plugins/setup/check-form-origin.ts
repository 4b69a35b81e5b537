import type { IncomingHttpHeaders } from 'node:http'
import { ToolError } from '../../schemas/errors.js'

const OWN_SITES = new Set(['same-origin', 'none'])
const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

/**
 * Refuses a form that another page has sent. The guard in front admits every origin this server answers to, those of other ports
 * on the same machine included; a form must come from the very origin it goes to: the public one, or the same scheme at the host that
 * the request names, or plain http on loopback, where a proxy is passed by. Programs send neither header.
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
