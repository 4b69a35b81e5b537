import { RPC } from './read-envelope.js'

/**
 * The JSON-RPC error with which a request is answered. `code` is the error code for revisions that begin with
 * `initialize`; for revision 2026-07-28, it may be replaced.
 */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  constructor(
    readonly code: number,
    message: string,
    readonly data?: object,
    /** The status of the HTTP answer; absent if the error does not determine it. */
    readonly status?: number,
  ) {
    super(message)
  }
}

export const rpcFailure = (code: number, message: string, data?: object): RpcFailure =>
  new RpcFailure(code, message, data)

export const invalidParams = (message: string, data?: object): RpcFailure =>
  rpcFailure(RPC.invalidParams, message, data)

/** Throws if a request contains a cursor. Lists have only one page and no cursors, so no cursor can be valid. */
export function refuseCursor(params: Record<string, unknown> | undefined): void {
  if ((params?.cursor ?? null) !== null) throw invalidParams('this server did not issue params.cursor')
}
