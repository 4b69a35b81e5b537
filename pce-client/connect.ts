import http, { type ClientRequest } from 'node:http'
import https from 'node:https'
import { isIP, type Socket, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import { rootCertificates } from 'node:tls'
import type { RequestFunction } from 'got'
import type { HttpsProxyAgentOptions } from 'hpagent'
import { PceError } from './errors.js'
import { basicAuthorization, type TlsSettings, type ClientSettings } from './settings.js'

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

/**
 * Plain http requests through a forward proxy, in absolute form (RFC 9112, 3.2.2): such proxies open tunnels to https ports
 * only, as a rule. Over TLS there is no other way than the tunnel, which hpagent makes.
 *
 * @param agent keeps the connections to the proxy; an https.Agent for an https:// proxy.
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

type Connected = (error: Error | null, socket: Duplex) => void

/** What Node's agents have besides their types: the way by which a request gets its connection, or its place in the queue. */
type QueueingAgent = https.Agent & { addRequest(request: ClientRequest, target: https.RequestOptions): void }

/**
 * https through a proxy's CONNECT tunnel. A request that has no connection yet cannot be ended, so the tunnel itself is given
 * up in the time of an attempt: a proxy that says nothing would hold the call otherwise.
 *
 * Node's agents count a connection once it is there, which a tunnel is only after its CONNECT: those under way are counted here,
 * or every call of a burst would open its own. And where one fails Node asks nobody who waits, so the next is asked here.
 *
 * @param timeoutMs asked for every tunnel, since `setTimeout` may have changed it.
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

/** Gives the next waiting request the turn of the failed one. */
function admitNext(agent: QueueingAgent, target: https.RequestOptions): void {
  const queue = (agent.requests as Record<string, ClientRequest[] | undefined>)[agent.getName(target)]
  // Those that were cancelled in the meantime, or have just failed, still stand there.
  while (queue?.[0]?.destroyed === true) queue.shift()
  const next = queue?.shift()
  if (next !== undefined) agent.addRequest(next, target)
}

/** The `reason` of a connection that the caller's own `lookup` or `checkPeer` refused. */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'

type Connecting = http.Agent & { createConnection(...args: unknown[]): Socket }

/** The lookup with its own refusals as what this client throws. Errors with a code are the name service's and stay what they are. */
function inOwnWords(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      callback(error === null ? null : asRefusal(error), address, family)
    })
  }
}

/**
 * Has every connection that the agent opens looked at as soon as it stands: before TLS, and so before anything is sent. Resolving
 * and connecting are two steps, and IP addresses are connected to without the first (`net.connect` asks no lookup for them).
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
