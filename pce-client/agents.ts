import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import type { ClientSettings } from './settings.js'

/** Connections to one PCE at a time. More callers than this wait for a free one. */
const MAX_CONNECTIONS = 16

/**
 * Idle connections are dropped before the usual 5 s of servers and balancers, so that a write is not sent into a connection
 * that is just being closed: its lost answer could only be reported as `outcome_unknown`.
 */
const IDLE_MS = 4000

export interface Agents {
  agent: { http: http.Agent } | { https: https.Agent }
  /** `host:port` of the proxy in use. */
  via: string | undefined
  closeIdle(): void
}

/** Keep-alive connections as the settings want them: TLS material and, with a proxy, a CONNECT tunnel (hpagent). */
export async function createAgents({ address, tls, proxies }: ClientSettings): Promise<Agents> {
  const pooling = { keepAlive: true, maxSockets: MAX_CONNECTIONS }
  const isTls = address.scheme === 'https'
  const trust = { rejectUnauthorized: tls.verify, ca: tls.ca, cert: tls.cert, key: tls.key }
  const proxy = isTls ? proxies.https : proxies.http
  if (proxy === undefined) {
    return isTls ? wrap({ https: new https.Agent({ ...pooling, ...trust }) }) : wrap({ http: new http.Agent(pooling) })
  }
  const { HttpProxyAgent, HttpsProxyAgent } = await import('hpagent')
  const via = `${proxy.hostname}:${proxy.port || (proxy.protocol === 'https:' ? '443' : '80')}`
  return isTls
    ? wrap({ https: new HttpsProxyAgent({ ...pooling, ...trust, proxy }) }, via)
    : wrap({ http: new HttpProxyAgent({ ...pooling, proxy }) }, via)
}

function wrap(agent: Agents['agent'], via?: string): Agents {
  const only = 'https' in agent ? agent.https : agent.http
  // The agents' own timeout option would bound the proxy's CONNECT as well. They drop idle connections that time out.
  only.on('free', (socket: Socket) => socket.setTimeout(IDLE_MS))
  const closeIdle = () => {
    for (const sockets of Object.values(only.freeSockets)) sockets?.forEach((socket) => socket.destroy())
  }
  return { agent, via, closeIdle }
}
