import type https from 'node:https'
import type { Duplex } from 'node:stream'
import type { HttpsProxyAgentOptions } from 'hpagent'

type Connected = (error: Error | null, socket: Duplex) => void

/**
 * https through a proxy's CONNECT tunnel. A request that has no connection yet cannot be ended, so the tunnel itself is given
 * up in the time of an attempt: a proxy that says nothing would hold the call otherwise.
 *
 * @param timeoutMs asked for every tunnel, since `setTimeout` may have changed it.
 */
export async function createTunnelAgent(
  options: HttpsProxyAgentOptions,
  timeoutMs: () => number,
): Promise<https.Agent> {
  const { HttpsProxyAgent } = await import('hpagent')
  const agent: https.Agent = new HttpsProxyAgent(options)
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (target: https.RequestOptions, callback?: Connected) =>
    connect({ ...target, timeout: timeoutMs() }, (error, socket) => {
      const isTimeout = error?.message === 'Proxy timeout'
      callback?.(isTimeout ? Object.assign(error, { code: 'ETIMEDOUT' }) : error, socket)
    })
  return agent
}
