import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { RequestFunction } from 'got'
import { basicAuthorization } from './basic-authorization.js'

/**
 * Plain http requests through a forward proxy, in absolute form (RFC 9112, 3.2.2): such proxies open tunnels to https ports
 * only, as a rule. Over TLS there is no other way than the tunnel, which hpagent makes.
 *
 * @param agent keeps the connections to the proxy; an https.Agent for an https:// proxy.
 */
export function createForwarding(proxy: URL, agent: http.Agent): RequestFunction {
  const isTls = proxy.protocol === 'https:'
  const hostname = proxy.hostname.replace(/^\[|\]$/g, '')
  const authorization = basicOf(proxy)
  return (url, options, callback) => {
    const own = authorization === undefined ? {} : { 'proxy-authorization': authorization }
    const headers = { ...(options.headers as http.OutgoingHttpHeaders), host: url.host, ...own }
    const request = (isTls ? https : http).request
    const toProxy = {
      ...options,
      agent,
      protocol: proxy.protocol,
      host: hostname,
      hostname,
      port: proxy.port || (isTls ? 443 : 80),
      path: url.href,
      headers,
      // Node would take the name from the Host header, which is the PCE's.
      servername: isIP(hostname) === 0 ? hostname : '',
    }
    return request(toProxy as http.RequestOptions, callback as (response: http.IncomingMessage) => void)
  }
}

function basicOf({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined
  return basicAuthorization(decodeURIComponent(username), decodeURIComponent(password))
}
