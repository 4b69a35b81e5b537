import { setMaxListeners } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { tooManyBytes } from './bound-answers.js'
import { PceError } from './errors.js'
import { nameOperation } from './name-operation.js'
import { classifyRequest, type RequestNature } from './retry-policy.js'
import { readCallTimeout, type ClientSettings } from './settings.js'
import type { SendOptions } from './transport.js'
import type { AnswerFacts, WatchedRequest } from './types.js'

/** The state of one call, shared by all its attempts. It is stored in got's `context`, where the hooks find it. */
export interface CallState {
  readonly method: string
  readonly path: string
  readonly origin: string
  /** `host:port` of the proxy that the call uses, without credentials. */
  readonly via: string | undefined
  readonly nature: RequestNature
  readonly retryCount: number
  readonly totalTimeoutMs: number
  /** Maximum size of the PCE's answer in bytes, after decompression. */
  readonly maxBytes: number
  readonly startedAt: number
  /** Returns the current time of the client's clock, in milliseconds since the epoch. */
  readonly now: () => number
  /**
   * A signal that aborts when the call is cancelled or its deadline passes. It is created on first use, because most
   * calls finish without needing it.
   */
  readonly signal: AbortSignal
  /** True after the caller's signal or the deadline has ended the call. */
  isOver: boolean
  /** The reason given by the caller's signal; undefined if the caller did not cancel. */
  reason: unknown
  /** True if the caller's signal ended the call; false if the deadline did. */
  cancelled: boolean
  /** If true, errors tell the caller only that a connection failed, not why. */
  readonly hidesReasons: boolean
  /** The PCE's answers to this call so far; undefined if the client has no `onAnswer` listener. */
  readonly answers: AnswerFacts[] | undefined
  /** Status of the last answer; undefined before the first answer. */
  status: number | undefined
  /** The observer returned by `onRequest`, to which the end of the call is reported. */
  readonly watched: WatchedRequest | undefined
  /** Cancels the request in progress. Called when the call is cancelled or its deadline passes. */
  stop: (() => void) | undefined
  attempts: number
  /**
   * Milliseconds to wait before the next attempt. This differs from `waitedMs`, which is the sum of all waits so far.
   */
  waitMs: number
  waitedMs: number
  /** True if the current attempt has reached the server, so the PCE may have acted on it. */
  connected: boolean
  /** True if the PCE may have carried out the request in an earlier attempt. */
  mayHaveHappened: boolean
  /** True if an earlier attempt ended in a 500, which the PCE can return even after it has carried out the request. */
  failedInside: boolean
  /**
   * True if the answer to an earlier attempt was lost on its way back. This is narrower than `mayHaveHappened`, which
   * is also true after a 503.
   */
  answerLost: boolean
  /**
   * If this client itself ended the attempt, the error that says why; otherwise undefined. It is recorded because
   * Node's own error would say only that the connection was closed. `retry` is true if another attempt may help.
   */
  ended: { error: PceError; retry: boolean } | undefined
}

/**
 * Watches one attempt on its connection: whether it reaches the server, how long its headers take, how long its body is
 * silent, and how large the body is. When a limit is exceeded, the function records the reason in `state.ended` and
 * destroys the request.
 */
export function watchAttempt(
  request: ClientRequest,
  state: CallState,
  limits: { headersMs: number; idleMs: number; maxBytes: number },
): void {
  const end = (error: PceError, retry: boolean) => {
    state.ended ??= { error, retry }
    request.destroy()
  }
  let headersTimer: NodeJS.Timeout | undefined
  request.once('close', () => clearTimeout(headersTimer))
  request.once('socket', (socket: Socket) => {
    // The timer starts only when the request gets a connection. The time that the request has waited for a free
    // connection of this client is not a delay of the PCE.
    headersTimer = setTimeout(() => {
      end(new PceError('unreachable', `no answer within ${limits.headersMs / 1000} s`, { reason: 'ETIMEDOUT' }), true)
    }, limits.headersMs)
    const tls = socket as Partial<TLSSocket> & { secureConnecting?: boolean }
    const isPending = socket.connecting || tls.secureConnecting === true
    // If `checkPeer` has refused the address, the socket has already been destroyed, and nothing has been sent over it.
    const reach = () => (state.connected = !socket.destroyed)
    // Since Node 24, a request no longer ends with the error that destroyed its socket, so the error is recorded here.
    const noteRefusal = () => {
      if (socket.errored instanceof PceError) state.ended ??= { error: socket.errored, retry: false }
    }
    if (socket.connecting) socket.once('connect', noteRefusal)
    if (isPending) socket.once(tls.encrypted === true ? 'secureConnect' : 'connect', reach)
    else reach()
  })
  request.once('response', (response: IncomingMessage) => {
    clearTimeout(headersTimer)
    noteAnswer(response, state)
    if (Number(response.headers['content-length'] ?? 0) > limits.maxBytes) end(tooManyBytes(limits.maxBytes), false)
    if (limits.idleMs === Infinity) return
    request.setTimeout(limits.idleMs, () => {
      end(
        new PceError('unreachable', `the answer stalled for ${limits.idleMs / 1000} s`, { reason: 'ETIMEDOUT' }),
        true,
      )
    })
  })
}

function noteAnswer({ statusCode = 0, headers }: IncomingMessage, state: CallState): void {
  const { answers, via } = state
  // A 407 comes from the proxy, not from the PCE.
  if (statusCode === 407 && via !== undefined) return
  state.status = statusCode
  if (answers === undefined) return
  const requestId = headers['x-request-id']
  const isUsable = typeof requestId === 'string' && /^[!-~]{1,128}$/.test(requestId)
  answers.push({ status: statusCode, ...(isUsable && { requestId }) })
}

/**
 * Creates the state of a call and connects it to the caller's signal and the deadline. `close` disconnects both and
 * reports how the call ended.
 */
export function openCall(
  settings: ClientSettings,
  { method, path, via }: Pick<CallState, 'method' | 'path' | 'via'>,
  options: SendOptions,
): { state: CallState; close(failure?: PceError): void } {
  const totalTimeoutMs = readCallTimeout(options.totalTimeoutMs) ?? settings.totalTimeoutMs
  const { timers } = settings
  let controller: AbortController | undefined
  const state: CallState = {
    method,
    path,
    via,
    origin: settings.address.origin,
    nature: classifyRequest(method, path),
    retryCount: options.retryCount ?? settings.retryCount,
    totalTimeoutMs,
    maxBytes: Math.min(options.maxBytes ?? Infinity, settings.bounds.body.bytes),
    startedAt: timers.now(),
    now: () => timers.now(),
    get signal() {
      if (controller === undefined) {
        controller = new AbortController()
        if (state.isOver) controller.abort(state.reason)
      }
      return controller.signal
    },
    isOver: false,
    reason: undefined,
    cancelled: false,
    hidesReasons: settings.hideReasons,
    answers: settings.onAnswer === undefined ? undefined : [],
    status: undefined,
    watched: settings.onRequest?.({ method, operation: nameOperation(method, path) }),
    stop: undefined,
    attempts: 0,
    waitMs: 0,
    waitedMs: 0,
    connected: false,
    mayHaveHappened: false,
    failedInside: false,
    answerLost: false,
    ended: undefined,
  }
  const end = () => {
    state.isOver = true
    controller?.abort(state.reason)
    state.stop?.()
  }
  const { signal } = options
  const cancel = () => {
    state.cancelled = true
    state.reason = signal?.reason
    end()
  }
  if (signal?.aborted === true) cancel()
  if (signal !== undefined) {
    // One signal may serve many calls at once. With Node's default limit of ten listeners, the eleventh call would
    // cause a warning about a memory leak.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel, { once: true })
  }
  // The timer is started last: `addEventListener` above throws if `signal` is not a signal, and a timer started before
  // it would keep running.
  const isBounded = options.withoutDeadline !== true || options.totalTimeoutMs !== undefined
  const deadline = isBounded ? setTimeout(end, totalTimeoutMs) : undefined
  const close = (failure?: PceError) => {
    clearTimeout(deadline)
    signal?.removeEventListener('abort', cancel)
    tellAnswers(settings, state)
    const { watched, status, attempts, waitedMs } = state
    watched?.ended({ status, failure: failure?.code, retries: Math.max(0, attempts - 1), waitedMs })
  }
  return { state, close }
}

/**
 * Reports the PCE's answers to the `onAnswer` listener when the call ends. They cannot be reported as they arrive,
 * because events of a shared connection run in the async context of the call that opened the connection.
 */
function tellAnswers({ onAnswer }: ClientSettings, { answers = [] }: CallState): void {
  for (const facts of answers) {
    try {
      onAnswer?.(facts)
    } catch {
      // An error thrown by the listener must not make the call fail.
    }
  }
}
