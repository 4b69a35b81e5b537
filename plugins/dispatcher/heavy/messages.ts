import type { MessagePort } from 'node:worker_threads'
import type { ToolContext } from '../../../domain/call.js'
import type { RemoteAddress } from '../../../pce-client/index.js'
import type { Act } from '../../../tools/define.js'
import type { ServiceError } from '../../errors/convert.js'

/** One call, in the form in which a thread receives it. */
export interface ThreadTask extends Pick<
  ToolContext,
  'caller' | 'requestId' | 'limits' | 'approved' | 'isBindingOnly'
> {
  /** The result of `ToolContext.cursorKey`. */
  cursorKey: Uint8Array
  tool: string
  act: Act
  args: unknown
  /** How far the clock of the call is ahead of this machine's clock, in milliseconds. */
  clockOffset: number
  server: { name: string; version: string }
  /** Maximum heap of the call, in MiB. */
  memoryMb: number
  /** The PCE's address and the port for requests to it; null for a caller without a PCE. */
  pce: { address: RemoteAddress; port: MessagePort } | null
  /** Carries `ToThread` and `FromThread` messages. */
  control: MessagePort
}

export type ToThread =
  /** Says which signal of the context has aborted, and why. */
  | { abort: 'signal' | 'beforeWriting'; reason: ServiceError }
  /** Gives the thread the turn that it asked for under this number, or says why there is none. */
  | { turn: number; others: readonly string[] }
  | { turn: number; refusal: ServiceError }

export type FromThread =
  /** The thread has loaded its module and begins with the task. */
  | { is: 'begun' }
  /** Sent once a second by a thread that is not busy with one long computation. */
  | { is: 'alive' }
  | { is: 'progress'; update: Parameters<ToolContext['progress']>[0] }
  | { is: 'log'; level: keyof ToolContext['log']; facts: object; message: string }
  /**
   * `enter` asks for a turn to add to an object, and `leave` ends the turn. The main thread keeps the order of turns.
   */
  | { is: 'enter'; turn: number; object: string }
  | { is: 'leave'; turn: number; written: readonly string[] }
  | { is: 'result'; value: unknown }
  /** `stack` is present if the error is unexpected, so that the caller sees only a fixed text. */
  | { is: 'error'; error: ServiceError; stack?: string }
