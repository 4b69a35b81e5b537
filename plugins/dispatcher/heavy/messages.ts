import type { MessagePort } from 'node:worker_threads'
import type { ToolContext } from '../../../domain/call.js'
import type { RemoteAddress } from '../../../pce-client/index.js'
import type { AnyTool } from '../../../tools/define.js'
import type { ServiceError } from '../../errors/convert.js'

/** Which function of a tool runs in a thread. */
export type Act = keyof Pick<AnyTool, 'handler' | 'preview' | 'boundTo'>

/** One call as a thread is given it. */
export interface ThreadTask extends Pick<ToolContext, 'caller' | 'requestId' | 'limits' | 'approved'> {
  /** What `ToolContext.cursorKey` returns. */
  cursorKey: Uint8Array
  tool: string
  act: Act
  args: unknown
  /** What the clock of the call is ahead of this machine's: milliseconds. */
  clockOffset: number
  server: { name: string; version: string }
  /** What the call may use of the heap, in MiB. */
  memoryMb: number
  /** Null for a caller without a PCE. */
  pce: { address: RemoteAddress; port: MessagePort } | null
  /** Carries `ToThread` and `FromThread`. */
  control: MessagePort
}

export interface ToThread {
  /** Which signal of the context is aborted. */
  abort: 'signal' | 'beforeWriting'
  reason: ServiceError
}

export type FromThread =
  | { is: 'progress'; update: Parameters<ToolContext['progress']>[0] }
  | { is: 'log'; level: keyof ToolContext['log']; facts: object; message: string }
  | { is: 'result'; value: unknown }
  /** `stack` where nothing that the caller is told says what happened. */
  | { is: 'error'; error: ServiceError; stack?: string }
