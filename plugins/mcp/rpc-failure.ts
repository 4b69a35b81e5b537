import { RPC } from './read-envelope.js'

/**
 * The JSON-RPC error that answers a request. Its code is meant for revisions with a handshake; for later revisions,
 * another code may replace it.
 */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  constructor(
    readonly code: number,
    message: string,
    readonly data?: object,
    /** The status of the HTTP answer, if the error is also an HTTP answer. */
    readonly status?: number,
  ) {
    super(message)
  }
}

export const rpcFailure = (code: number, message: string, data?: object): RpcFailure =>
  new RpcFailure(code, message, data)

export const invalidParams = (message: string, data?: object): RpcFailure =>
  rpcFailure(RPC.invalidParams, message, data)

/** Refuses a cursor: lists have a single page and give out no cursor, so none can be valid. */
export function refuseCursor(params: Record<string, unknown> | undefined): void {
  if (params?.cursor !== undefined) throw invalidParams('this server did not issue params.cursor')
}
