/** JSON-RPC 2.0, section 5.1; -32000 is the range left to servers, which MCP uses for what the HTTP transport refuses. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  transport: -32000,
} as const

export type RpcId = string | number | null

/** A message that is no JSON-RPC, or not one MCP allows: refused as a whole, over HTTP with status 400. */
export class RpcProblem extends Error {
  override readonly name = 'RpcProblem'
  constructor(
    readonly code: number,
    message: string,
    /** Of the message at fault, where it could be read. */
    readonly id: RpcId = null,
  ) {
    super(message)
  }
}

export interface RpcErrorBody {
  jsonrpc: '2.0'
  id: RpcId
  error: { code: number; message: string; data?: object }
}

export const rpcError = (id: RpcId, code: number, message: string, data?: object): RpcErrorBody => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data && { data }) },
})
