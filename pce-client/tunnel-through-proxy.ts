import type { ClientRequest } from 'node:http'
import type https from 'node:https'
import type { Duplex } from 'node:stream'
import type { HttpsProxyAgentOptions } from 'hpagent'

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
export async function createTunnelAgent(
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

/** Gives the next waiting request its chance, which the failed one had. */
function admitNext(agent: QueueingAgent, target: https.RequestOptions): void {
  const queue = (agent.requests as Record<string, ClientRequest[] | undefined>)[agent.getName(target)]
  // Those that were cancelled meanwhile, or have just failed, still stand there.
  while (queue?.[0]?.destroyed === true) queue.shift()
  const next = queue?.shift()
  if (next !== undefined) agent.addRequest(next, target)
}
