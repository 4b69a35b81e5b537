import { readShowsApps } from './apps.js'
import {
  type Cacheability,
  clientName,
  type InnerCall,
  type InnerResult,
  readCanAsk,
  SUBSCRIPTION_KEY,
} from './eras.js'
import { instructionsFor } from './instructions.js'
import type { RequestPorts, ServerPorts } from './ports.js'
import { invalidParams } from './rpc-failure.js'
import { BATCH_VERSION, type Era, negotiate, SUPPORTED_VERSIONS } from './versions.js'

interface LifecyclePorts {
  server: ServerPorts
  request: RequestPorts
  capabilities: object
  /** The cacheability of answers that depend on the caller's offer. */
  cache: Cacheability
}

/**
 * Answers the requests that do not belong to a client's actual work. These are the only methods that differ between the
 * eras: a handshake and pings in the older era; in the newer era, the discovery of the server, and a subscription to
 * changes. Returns null for any other method. Throws RpcFailure.
 */
export function answerLifecycle(era: Era, call: InnerCall, ports: LifecyclePorts): InnerResult | null {
  switch (`${era} ${call.method}`) {
    case 'legacy initialize':
      return initialize(call, ports)
    case 'legacy ping':
      return { kind: 'result', result: {} }
    case 'modern server/discover':
      return discover(ports)
    case 'modern subscriptions/listen':
      return listen(call, ports)
    default:
      return null
  }
}

function initialize({ params }: InnerCall, { server, capabilities }: LifecyclePorts): InnerResult {
  const asked = params?.protocolVersion
  if (typeof asked !== 'string') throw invalidParams('params.protocolVersion must be a string')
  const protocolVersion = negotiate(asked)
  const { capabilities: declared } = params ?? {}
  const { form } = readCanAsk((declared ?? {}) as Record<string, unknown>)
  // Elicitation did not exist in protocol version 2025-03-26.
  const shows = { forms: form && protocolVersion !== BATCH_VERSION, apps: readShowsApps(declared) }
  server.onInitialize?.(clientName(params?.clientInfo), protocolVersion, shows)
  return {
    kind: 'result',
    result: { protocolVersion, capabilities, serverInfo: server.info, instructions: instructionsOf(server) },
  }
}

const discover = ({ server, capabilities, cache }: LifecyclePorts): InnerResult => ({
  kind: 'result',
  result: { supportedVersions: SUPPORTED_VERSIONS, capabilities, instructions: instructionsOf(server) },
  cache,
})

const instructionsOf = ({ listTools, offered }: ServerPorts) => instructionsFor(listTools(offered))

/**
 * Answers a subscription. Nothing that a client could subscribe to ever changes, so no notifications are granted, and
 * the subscription ends at once; a stream that stays open would occupy one of the caller's places without ever saying
 * anything (MCP subscriptions, "Acknowledgment", "Graceful Closure").
 */
function listen({ params }: InnerCall, { request }: LifecyclePorts): InnerResult {
  const { notifications } = params ?? {}
  if (typeof notifications !== 'object' || notifications === null || Array.isArray(notifications))
    throw invalidParams('params.notifications must be an object')
  const meta = { [SUBSCRIPTION_KEY]: request.id }
  request.notify('notifications/subscriptions/acknowledged', { _meta: meta, notifications: {} })
  return { kind: 'result', result: { _meta: meta } }
}
