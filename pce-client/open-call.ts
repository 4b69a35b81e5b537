import { setMaxListeners } from 'node:events'
import type { CallState } from './call-state.js'
import { classifyRequest } from './classify-request.js'
import { readCallTimeout, type ClientSettings } from './settings.js'
import type { SendOptions } from './transport.js'

/** The state of a call, tied to the caller's signal and to the call's deadline until it is closed. */
export function openCall(
  settings: ClientSettings,
  { method, path, via }: Pick<CallState, 'method' | 'path' | 'via'>,
  options: SendOptions,
): { state: CallState; close(): void } {
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
    stop: undefined,
    attempts: 0,
    waitMs: 0,
    connected: false,
    mayHaveHappened: false,
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
  const isBounded = options.streamed !== true || options.totalTimeoutMs !== undefined
  const deadline = isBounded ? setTimeout(end, totalTimeoutMs) : undefined
  const close = () => {
    clearTimeout(deadline)
    signal?.removeEventListener('abort', cancel)
    tellAnswers(settings, state)
  }
  return { state, close }
}

/** Here, and not as each answer arrives: the events of a shared connection run in the context of whoever opened it. */
function tellAnswers({ onAnswer }: ClientSettings, { answers = [] }: CallState): void {
  for (const facts of answers) {
    try {
      onAnswer?.(facts)
    } catch {
      // Whoever listens must not turn an answer into a failed call.
    }
  }
}
