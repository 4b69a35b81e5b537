import { RPC } from './read-envelope.js'

/** What makes the SDK answer a request with this JSON-RPC error. A plain Error: the SDK's own McpError would say the code twice. */
export const rpcFailure = (code: number, message: string, data?: object): Error =>
  Object.assign(new Error(message), { code, ...(data && { data }) })

export const invalidParams = (message: string, data?: object): Error => rpcFailure(RPC.invalidParams, message, data)

/** Lists of one page hand out no cursor, so nobody can have one. */
export function refuseCursor(params: Record<string, unknown> | undefined): void {
  if (params?.cursor !== undefined) throw invalidParams('this server did not issue params.cursor')
}
