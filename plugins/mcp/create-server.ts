import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import { answerRequest, CAPABILITIES } from './answer-request.js'
import { readCall, renderFailure, resultOf } from './eras.js'
import type { Elicit, ServerPorts } from './ports.js'
import { rpcFailure } from './rpc-failure.js'

/** The time, in milliseconds, within which a person must answer a question. */
const ANSWERED_WITHIN_MS = 15 * 60_000

/**
 * Creates the SDK's low-level Server for a connection with a handshake. The SDK's own validation (zod) would answer
 * params of the wrong form with -32603 and a dump of its schema, and would accept versions that this server does not
 * offer. Therefore all methods are answered by the fallback handler, which gets requests unchanged. Only cancellation
 * and requests to the client are left to the SDK.
 */
export function createMcpServer(given: ServerPorts): Server {
  let shows = { forms: false, apps: false }
  const ports: ServerPorts = {
    ...given,
    showsApps: () => shows.apps,
    onInitialize(client, version, declared) {
      shows = declared
      given.onInitialize?.(client, version, declared)
    },
  }
  const server = new Server(ports.info, {
    capabilities: CAPABILITIES,
    jsonSchemaValidator: new AjvJsonSchemaValidator(),
  })
  server.removeRequestHandler('initialize')
  server.removeRequestHandler('ping')
  server.fallbackRequestHandler = async (request, { signal, sendNotification, sendRequest }) => {
    const elicit: Elicit = (form) =>
      sendRequest({ method: 'elicitation/create', params: form }, ElicitResultSchema, {
        signal,
        timeout: ANSWERED_WITHIN_MS,
      }).catch(() => null)
    const notify = (method: string, params: object) => {
      // Sending fails only if the client has left.
      sendNotification({ method, params } as never).catch(() => {})
    }
    try {
      const read = readCall(request)
      const result = await answerRequest(read, ports, {
        id: request.id,
        client: { signal },
        notify,
        ...(shows.forms && { elicit }),
      })
      return resultOf(result, read.era, ports.info)
    } catch (thrown) {
      const { error, isUnexpected } = renderFailure(thrown, 'legacy')
      if (isUnexpected) ports.onFailure(thrown)
      // The SDK converts this exception back to a JSON-RPC error.
      throw rpcFailure(error.code, error.message, error.data)
    }
  }
  return server
}
