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
import { RPC } from './read-envelope.js'
import { invalidParams, RpcFailure } from './rpc-failure.js'
import { BATCH_VERSION, type Era, negotiate, SUPPORTED_VERSIONS } from './versions.js'

interface LifecyclePorts {
  server: ServerPorts
  request: RequestPorts
  capabilities: object
  /** The caching rule for answers that depend on the tools offered to the caller. */
  cache: Cacheability
}

/**
 * Answers the requests that only concern the connection between client and server. These are the only methods that
 * depend on the protocol era: `initialize` and `ping` in the legacy era, `server/discover` and `subscriptions/listen`
 * in the modern era. Returns null for any other method. Throws RpcFailure.
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
  // Protocol version 2025-03-26 has no elicitation, so its clients cannot show forms.
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

const STREAM_NEEDED = 'subscriptions/listen is answered with a stream: the client must accept text/event-stream.'

/**
 * Answers `subscriptions/listen`. Nothing to which a client could subscribe ever changes, so the server acknowledges no
 * notifications and ends the subscription at once. An open stream would occupy one of the caller's slots for
 * simultaneous requests without ever sending anything (MCP subscriptions, "Acknowledgment", "Graceful Closure"). A
 * client that accepts only JSON is refused, because it would miss the acknowledgement.
 */
function listen({ params }: InnerCall, { request, server }: LifecyclePorts): InnerResult {
  const { notifications } = params ?? {}
  if (typeof notifications !== 'object' || notifications === null || Array.isArray(notifications))
    throw invalidParams('params.notifications must be an object')
  if (request.isDeaf === true)
    throw new RpcFailure(RPC.refused, STREAM_NEEDED, { error: 'not_acceptable', request_id: server.requestId() }, 406)
  const meta = { [SUBSCRIPTION_KEY]: request.id }
  request.notify('notifications/subscriptions/acknowledged', { _meta: meta, notifications: {} })
  return { kind: 'result', result: { _meta: meta } }
}
