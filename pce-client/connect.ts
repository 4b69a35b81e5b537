import http, { type ClientRequest } from 'node:http'
import https from 'node:https'
import { isIP, type Socket, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import { rootCertificates } from 'node:tls'
import type { RequestFunction } from 'got'
import type { HttpsProxyAgentOptions } from 'hpagent'
import { PceError } from './errors.js'
import { basicAuthorization, type TlsSettings, type ClientSettings } from './settings.js'

/** Maximum number of simultaneous connections to one PCE. Further requests wait for a free one. */
const MAX_CONNECTIONS = 16

/**
 * Milliseconds for which an idle connection is kept. Servers and load balancers usually close idle connections after 5
 * s. The value is lower, so that no write is sent over a connection that the server is just closing: the answer would
 * be lost and could only be reported as `outcome_unknown`.
 */
const IDLE_MS = 4000

export interface Agents {
  /**
   * The options that tell got how to connect: an `agent`, or a `request` function if plain http requests go through a
   * forward proxy.
   */
  connect: { agent: { http: http.Agent } | { https: https.Agent } } | { request: RequestFunction }
  /** `host:port` of the proxy in use; undefined without a proxy. */
  via: string | undefined
  closeIdle(): void
}

/**
 * Creates keep-alive agents with the TLS certificates of the settings. If there is a proxy, requests go through a
 * CONNECT tunnel (hpagent) or are forwarded as plain http.
 */
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

/**
 * Returns the TLS trust settings for an https:// proxy. The proxy's certificate may be signed by the CA bundle or by an
 * authority in Node's own store, whereas the PCE's certificate must be signed by the bundle if there is one. The proxy
 * never gets the client certificate.
 */
function trustInProxy({ verify, ca }: TlsSettings) {
  return { rejectUnauthorized: verify, ...(ca === undefined ? {} : { ca: [ca, ...rootCertificates] }) }
}

/**
 * Makes an agent close connections that have been idle too long, and returns a function that closes all idle
 * connections at once. The agent's own `timeout` option is not used, because it would also limit the proxy's CONNECT.
 */
function keep(agent: http.Agent): () => void {
  agent.on('free', (socket: Socket) => socket.setTimeout(IDLE_MS))
  return () => {
    for (const sockets of Object.values(agent.freeSockets)) sockets?.forEach((socket) => socket.destroy())
  }
}

/**
 * Creates a request function for plain http through a forward proxy. The request line contains the complete URL (RFC
 * 9112, 3.2.2), so that no tunnel is needed: such proxies usually open tunnels to https ports only. For https, hpagent
 * opens a tunnel instead.
 *
 * @param agent the agent that keeps the connections to the proxy; an https.Agent for an https:// proxy.
 */
function createForwarding(proxy: URL, agent: http.Agent): RequestFunction {
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
      // By default, Node would take the server name from the Host header, which names the PCE and not the proxy.
      servername: isIP(hostname) === 0 ? hostname : '',
    }
    return request(toProxy as http.RequestOptions, callback as (response: http.IncomingMessage) => void)
  }
}

function basicOf({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined
  return basicAuthorization(decodeURIComponent(username), decodeURIComponent(password))
}

type Connected = (error: Error | null, socket: Duplex) => void

/**
 * The type of Node's agents with `addRequest`, a method that their declared types lack. It gives a request a free
 * connection, or puts it in the queue of waiting requests.
 */
type QueueingAgent = https.Agent & { addRequest(request: ClientRequest, target: https.RequestOptions): void }

/**
 * Creates an agent for https through a proxy's CONNECT tunnel. A request that has no connection yet cannot be
 * cancelled, so the opening of a tunnel is limited to the time-out of one attempt; otherwise a silent proxy would block
 * the call.
 *
 * Node's agents count a connection only when it is established, and a tunnel is established only after its CONNECT.
 * This function therefore counts the tunnels that are being opened; otherwise, every call of a burst would open its own
 * tunnel. When a tunnel fails, Node does not start the next request in its queue, so this function does that as well.
 *
 * @param timeoutMs returns the time-out; called for every tunnel, because the client's `setTimeout` may have changed
 *   it.
 */
async function createTunnelAgent(
  options: HttpsProxyAgentOptions & { maxSockets: number },
  timeoutMs: () => number,
): Promise<https.Agent> {
  const { HttpsProxyAgent } = await import('hpagent')
  const agent = new HttpsProxyAgent(options) as QueueingAgent
  const connect = agent.createConnection.bind(agent)
  let underWay = 0
  Object.defineProperty(agent, 'maxSockets', { get: () => options.maxSockets - underWay })
  agent.createConnection = (target: https.RequestOptions, callback?: Connected) => {
    underWay += 1
    return connect({ ...target, timeout: timeoutMs() }, (error, socket) => {
      underWay -= 1
      const isTimeout = error?.message === 'Proxy timeout'
      callback?.(isTimeout ? Object.assign(error, { code: 'ETIMEDOUT' }) : error, socket)
      if (error !== null) setImmediate(admitNext, agent, target)
    })
  }
  return agent
}

/**
 * Takes the next request from the agent's queue of waiting requests, and gives it the connection slot of a request that
 * has failed.
 */
function admitNext(agent: QueueingAgent, target: https.RequestOptions): void {
  const queue = (agent.requests as Record<string, ClientRequest[] | undefined>)[agent.getName(target)]
  // The queue still contains requests that were cancelled or have failed in the meantime.
  while (queue?.[0]?.destroyed === true) queue.shift()
  const next = queue?.shift()
  if (next !== undefined) agent.addRequest(next, target)
}

/** The `reason` of the error that is thrown if the caller's `lookup` or `checkPeer` refuses a connection. */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'

type Connecting = http.Agent & { createConnection(...args: unknown[]): Socket }

/**
 * Wraps the caller's lookup function, and turns its refusal of an address into a PceError. An error that has a `code`
 * comes from the name service and is passed on unchanged.
 */
function inOwnWords(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      callback(error === null ? null : asRefusal(error), address, family)
    })
  }
}

/**
 * Makes the agent check the peer's address of every new connection before TLS starts, and so before anything is sent.
 * The check is separate from the lookup because `net.connect` does not call the lookup if the host is already an IP
 * address.
 */
function watchPeers<A extends http.Agent>(agent: A, checkPeer: ((address: string) => void) | undefined): A {
  if (checkPeer === undefined) return agent
  const connecting = agent as A & Connecting
  const connect = connecting.createConnection.bind(agent)
  connecting.createConnection = (...args) => {
    const socket = connect(...args)
    socket.prependOnceListener('connect', () => {
      try {
        checkPeer(socket.remoteAddress ?? '')
      } catch (error) {
        socket.destroy(asRefusal(error as Error))
      }
    })
    return socket
  }
  return agent
}

function asRefusal(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  if (typeof error.code === 'string') return error
  return new PceError('unreachable', error.message, { reason: ADDRESS_REFUSED })
}
