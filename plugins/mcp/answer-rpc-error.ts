import { convertHttp } from '../errors/convert.js'
import { renderHttpError } from '../errors/render-http.js'
import { rpcError, RPC, RpcProblem, type RpcErrorBody } from './rpc-problem.js'

export interface RpcErrorAnswer {
  status: number
  /** Seconds for `Retry-After`. */
  retryAfter?: number
  body: RpcErrorBody
}

/**
 * Anything that kept an HTTP request from reaching the MCP Server, in the shape MCP clients read: 400 with the JSON-RPC code of
 * its envelope, or the status of the HTTP rule it broke with -32000. `data` carries our own code and the request id.
 */
export function answerRpcError(thrown: unknown, requestId: string): RpcErrorAnswer {
  if (thrown instanceof RpcProblem) {
    return { status: 400, body: rpcError(thrown.id, thrown.code, thrown.message, { request_id: requestId }) }
  }
  const { status, retryAfter, body } = renderHttpError(convertHttp(thrown), requestId)
  const { message, ...data } = body
  return { status, retryAfter, body: rpcError(null, RPC.transport, message, data) }
}
