import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { answerRequest } from './answer-request.js'
import { readCall, renderFailure, renderResult, type RequestHeaders } from './eras.js'
import type { Answered } from './http-exchange.js'
import type { MessagePorts, RequestPorts, ServerPorts } from './ports.js'
import { claimedVersion, type Era, isLegacy } from './versions.js'

/**
 * Answers one request of either protocol era with a complete JSON-RPC message. `request` is the request as it was
 * received. `headers` are the HTTP headers; they are absent if the request did not come over HTTP. Never rejects.
 */
export async function answerMessage(
  request: JSONRPCRequest,
  server: ServerPorts,
  client: MessagePorts,
  headers?: RequestHeaders,
): Promise<Answered> {
  const { id } = request
  const ports: RequestPorts = {
    id,
    client,
    isDeaf: client.isDeaf ?? false,
    elicit: client.elicit,
    notify: (method, params) => client.notify({ method, params, jsonrpc: '2.0' }),
  }
  let era = guessEra(request, headers)
  try {
    const read = readCall(request, headers)
    ;({ era } = read)
    const result = await answerRequest(read, server, ports)
    return {
      text: `{"result":${renderResult(result, era, server.info)},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`,
      status: 200,
    }
  } catch (thrown) {
    const { error, status, isUnexpected } = renderFailure(thrown, era)
    if (isUnexpected) server.onFailure(thrown)
    return { text: JSON.stringify({ jsonrpc: '2.0', id, error }), status }
  }
}

/**
 * Returns the protocol era to which a request seems to belong, according to the version in its params or, if there is
 * none, in its headers. If the request cannot be read, the error is formatted for this era.
 */
function guessEra({ params }: JSONRPCRequest, headers: RequestHeaders | undefined): Era {
  const named = claimedVersion(params) ?? headers?.['mcp-protocol-version']
  return named === undefined || isLegacy(named) ? 'legacy' : 'modern'
}
