import type { MessagePort } from 'node:worker_threads'
import type { ToolContext } from '../../../domain/call.js'
import type { RemoteAddress } from '../../../pce-client/index.js'
import type { Act } from '../../../tools/define.js'
import type { ServiceError } from '../../errors/convert.js'

/**
 * Size in bytes of the PCE's answers that a call may receive while others hold all places for large reading: some
 * 10,000 rows of traffic. A call that has received more takes much memory until it ends.
 */
export const FREE_BYTES = 8 * 1024 * 1024

/** A task for a worker thread: the call of one function of one tool, as data that can be sent to the thread. */
export interface ThreadTask extends Pick<
  ToolContext,
  'caller' | 'requestId' | 'limits' | 'approved' | 'isBindingOnly' | 'isForPage'
> {
  /** The key that signs the call's cursors (the result of `ToolContext.cursorKey`). */
  cursorKey: Uint8Array
  tool: string
  act: Act
  args: unknown
  /** The difference, in milliseconds, between the clock that the call uses and the clock of this machine. */
  clockOffset: number
  server: { name: string; version: string }
  /** Maximum size of the heap for the call, in MiB. */
  memoryMb: number
  /** The PCE's address and the port for requests to it; null for a caller without a PCE. */
  pce: { address: RemoteAddress; port: MessagePort } | null
  /** The message port between the main thread (`ToThread`) and the worker thread (`FromThread`). */
  control: MessagePort
}

export type ToThread =
  /** Tells the thread which signal of the context was aborted, and why. */
  | { abort: 'signal' | 'beforeWriting'; reason: ServiceError }
  /**
   * Answers the thread's request for a turn to add something to an object: the message either grants the turn, or says
   * why the thread does not get it. `turn` is the number of the request.
   */
  | { turn: number; others: readonly string[] }
  | { turn: number; refusal: ServiceError }

export type FromThread =
  /** The thread has loaded its module and is starting the task. */
  | { is: 'begun' }
  /** A sign of life. A thread sends it once a second, unless it is busy with one long computation. */
  | { is: 'alive' }
  | { is: 'progress'; update: Parameters<ToolContext['progress']>[0] }
  | { is: 'log'; level: keyof ToolContext['log']; facts: object; message: string }
  /**
   * `enter` requests a turn to add something to an object, and `leave` ends the turn. The main thread manages the order
   * of the turns.
   */
  | { is: 'enter'; turn: number; object: string }
  | { is: 'leave'; turn: number; written: readonly string[] }
  | { is: 'result'; value: unknown }
  /** `stack` is present if the error is unexpected; the caller then sees only a fixed text. */
  | { is: 'error'; error: ServiceError; stack?: string }
