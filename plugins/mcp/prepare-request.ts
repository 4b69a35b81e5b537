import { RELATED_TASK_META_KEY, type JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { RPC, rpcError, type RpcErrorBody } from './rpc-problem.js'

/**
 * Makes a request ready for the SDK's Server, which drops without an answer what does not fit its own schemas: params that are a
 * list, a `_meta` that is no object or a progress token that is neither string nor integer are answered here with -32602. Task
 * fields are left out, since this server declares no tasks and must then treat the request as an ordinary one.
 */
export function prepareRequest(request: JSONRPCRequest): { request: JSONRPCRequest } | { answer: RpcErrorBody } {
  const params: unknown = request.params
  if (params === undefined) return { request }
  const refuse = (why: string) => ({ answer: rpcError(request.id, RPC.invalidParams, `Invalid params: ${why}`) })
  if (!isObject(params)) return refuse('params must be an object')
  const { task, _meta: meta, ...rest } = params
  if (meta === undefined && !('_meta' in params))
    return task === undefined ? { request } : { request: { ...request, params: rest } }
  if (!isObject(meta)) return refuse('_meta must be an object')
  const token = meta.progressToken
  if (token !== undefined && typeof token !== 'string' && !Number.isSafeInteger(token)) {
    return refuse('_meta.progressToken must be a string or an integer')
  }
  const { [RELATED_TASK_META_KEY]: _related, ...kept } = meta
  return { request: { ...request, params: { ...rest, _meta: kept } } }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
