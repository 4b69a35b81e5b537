import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { rootCertificates } from 'node:tls'
import type { RequestFunction } from 'got'
import { createForwarding } from './forward-requests.js'
import { inOwnWords, watchPeers } from './guard-connections.js'
import type { TlsSettings } from './read-tls-files.js'
import type { ClientSettings } from './settings.js'
import { createTunnelAgent } from './tunnel-through-proxy.js'

/** Connections to one PCE at a time. More callers than this wait for a free one. */
const MAX_CONNECTIONS = 16

/**
 * Idle connections are dropped before the usual 5 s of servers and balancers, so that a write is not sent into a connection
 * that is just being closed: its lost answer could only be reported as `outcome_unknown`.
 */
const IDLE_MS = 4000

export interface Agents {
  /** How got is to connect: its `agent`, or its `request` where a forward proxy takes the requests. */
  connect: { agent: { http: http.Agent } | { https: https.Agent } } | { request: RequestFunction }
  /** `host:port` of the proxy in use. */
  via: string | undefined
  closeIdle(): void
}

/** Keep-alive connections as the settings want them: TLS material and, with a proxy, a CONNECT tunnel (hpagent) or forwarding. */
export async function createAgents(settings: ClientSettings): Promise<Agents> {
  const { address, tls, proxies } = settings
  const pooling = { keepAlive: true, maxSockets: MAX_CONNECTIONS }
  const direct = { ...pooling, ...(settings.lookup !== undefined && { lookup: inOwnWords(settings.lookup) }) }
  const isTls = address.scheme === 'https'
  const proxy = isTls ? proxies.https : proxies.http
  if (!isTls && proxy === undefined) {
    const agent = watchPeers(new http.Agent(direct), settings.checkPeer)
    return { connect: { agent: { http: agent } }, via: undefined, closeIdle: keep(agent) }
  }
  const identified = { ...pooling, rejectUnauthorized: tls.verify, ca: tls.ca, cert: tls.cert, key: tls.key }
  if (proxy === undefined) {
    const agent = watchPeers(new https.Agent({ ...identified, ...direct }), settings.checkPeer)
    return { connect: { agent: { https: agent } }, via: undefined, closeIdle: keep(agent) }
  }
  const via = `${proxy.hostname}:${proxy.port || (proxy.protocol === 'https:' ? '443' : '80')}`
  const towardsProxy = trustInProxy(tls)
  if (!isTls) {
    const isTlsProxy = proxy.protocol === 'https:'
    const agent = isTlsProxy ? new https.Agent({ ...pooling, ...towardsProxy }) : new http.Agent(pooling)
    return { connect: { request: createForwarding(proxy, agent) }, via, closeIdle: keep(agent) }
  }
  const tunnel = { ...identified, proxy, proxyRequestOptions: towardsProxy }
  const agent = await createTunnelAgent(tunnel, () => settings.requestTimeoutMs)
  return { connect: { agent: { https: agent } }, via, closeIdle: keep(agent) }
}

/** An https:// proxy may be known to the CA bundle or, unlike the PCE then, to Node's own store. It never gets the client certificate. */
function trustInProxy({ verify, ca }: TlsSettings) {
  return { rejectUnauthorized: verify, ...(ca === undefined ? {} : { ca: [ca, ...rootCertificates] }) }
}

/** The agents' own timeout option would bound the proxy's CONNECT as well. They drop idle connections that time out. */
function keep(agent: http.Agent): () => void {
  agent.on('free', (socket: Socket) => socket.setTimeout(IDLE_MS))
  return () => {
    for (const sockets of Object.values(agent.freeSockets)) sockets?.forEach((socket) => socket.destroy())
  }
}
