import { RPC } from './read-envelope.js'

/** The JSON-RPC error that a request is answered with. Its code is that of the revisions with a handshake. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  constructor(
    readonly code: number,
    message: string,
    readonly data?: object,
    /** Of the HTTP answer, where the error is one of HTTP as well. */
    readonly status?: number,
  ) {
    super(message)
  }
}

export const rpcFailure = (code: number, message: string, data?: object): RpcFailure =>
  new RpcFailure(code, message, data)

export const invalidParams = (message: string, data?: object): RpcFailure =>
  rpcFailure(RPC.invalidParams, message, data)

/** Lists of one page hand out no cursor, so nobody can have one. */
export function refuseCursor(params: Record<string, unknown> | undefined): void {
  if (params?.cursor !== undefined) throw invalidParams('this server did not issue params.cursor')
}
