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

/** What one call knows across its attempts. Travels in got's `context`, where the hooks find it. */
export interface CallState {
  readonly method: string
  readonly path: string
  readonly origin: string
  /** `host:port` of the proxy in between, without its credentials. */
  readonly via: string | undefined
  readonly nature: RequestNature
  readonly retryCount: number
  readonly totalTimeoutMs: number
  readonly startedAt: number
  /** The client's clock, milliseconds since the epoch. */
  readonly now: () => number
  /** Aborted when the call is over. Made by its first reader, since most calls are done without anyone waiting on it. */
  readonly signal: AbortSignal
  /** The caller's signal or the call's deadline has ended the call. */
  isOver: boolean
  /** The caller's own reason; undefined unless it was the caller's signal. */
  reason: unknown
  /** True once the caller's own signal, and not the deadline, has ended the call. */
  cancelled: boolean
  /** What a failed connection says is no business of the caller. */
  readonly hidesReasons: boolean
  /** What the PCE has answered so far, where anyone wants to know. */
  readonly answers: AnswerFacts[] | undefined
  /** Of the last answer; undefined before the first. */
  status: number | undefined
  /** Who wants to know how the call ended. */
  readonly watched: WatchedRequest | undefined
  /** Ends the request under way when the call is over. */
  stop: (() => void) | undefined
  attempts: number
  /** Before the next attempt, and before all of them so far. */
  waitMs: number
  waitedMs: number
  /** The current attempt has reached the server, so what it asks for may have happened. */
  connected: boolean
  /** An earlier attempt may have been carried out. */
  mayHaveHappened: boolean
  /** An earlier attempt ended in a 500, which the PCE may say after it has done what it was asked. */
  failedInside: boolean
  /** The answer of an earlier attempt was lost on its way back: narrower than that it may have happened, which a 503 leaves open too. */
  answerLost: boolean
  /** Why this client ended the attempt itself. Node reports only a closed connection then. */
  ended: { error: PceError; retry: boolean } | undefined
}

/**
 * Watches one attempt on the wire: time until its headers, silence of its body, size of its body, and whether the server was
 * reached at all. Ends it through `state.ended` and a destroyed request.
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
    // Not before: waiting for one of the client's own connections is no silence of the PCE.
    headersTimer = setTimeout(() => {
      end(new PceError('unreachable', `no answer within ${limits.headersMs / 1000} s`, { reason: 'ETIMEDOUT' }), true)
    }, limits.headersMs)
    const tls = socket as Partial<TLSSocket> & { secureConnecting?: boolean }
    const isPending = socket.connecting || tls.secureConnecting === true
    // One that was refused before anything was sent over it is destroyed already.
    const reach = () => (state.connected = !socket.destroyed)
    // From Node 24 on the error that it was destroyed with is not the one that the request ends with.
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
  // A 407 is the proxy's.
  if (statusCode === 407 && via !== undefined) return
  state.status = statusCode
  if (answers === undefined) return
  const requestId = headers['x-request-id']
  const isUsable = typeof requestId === 'string' && /^[!-~]{1,128}$/.test(requestId)
  answers.push({ status: statusCode, ...(isUsable && { requestId }) })
}

/** The state of a call, tied to the caller's signal and to the call's deadline until it is closed, with what it ended in. */
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
    // One signal serves many calls at once; Node would warn of a leak from the eleventh on.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', cancel, { once: true })
  }
  // Last: what is no signal throws above, and would leave the timer behind.
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

/** Here, and not as each answer arrives: the events of a shared connection run in the context of the call that opened it. */
function tellAnswers({ onAnswer }: ClientSettings, { answers = [] }: CallState): void {
  for (const facts of answers) {
    try {
      onAnswer?.(facts)
    } catch {
      // A listener must not turn an answer into a failed call.
    }
  }
}
