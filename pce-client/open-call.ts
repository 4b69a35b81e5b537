import { setMaxListeners } from 'node:events'
import type { CallState } from './call-state.js'
import { classifyRequest } from './classify-request.js'
import type { ClientSettings } from './settings.js'
import type { SendOptions } from './transport.js'

/** The state of a call, tied to the caller's signal and to the call's deadline until it is closed. */
export function openCall(
  settings: ClientSettings,
  facts: Pick<CallState, 'method' | 'path' | 'via'>,
  options: SendOptions,
): { state: CallState; close(): void } {
  const controller = new AbortController()
  const totalTimeoutMs = options.totalTimeoutMs ?? settings.totalTimeoutMs
  const state: CallState = {
    ...facts,
    origin: settings.address.origin,
    nature: classifyRequest(facts.method, facts.path),
    retryCount: options.retryCount ?? settings.retryCount,
    totalTimeoutMs,
    startedAt: settings.timers.now(),
    now: () => settings.timers.now(),
    signal: controller.signal,
    cancelled: false,
    attempts: 0,
    waitMs: 0,
    connected: false,
    mayHaveHappened: false,
    ended: undefined,
  }
  const cancel = () => {
    state.cancelled = true
    controller.abort(options.signal?.reason)
  }
  const deadline = options.streamed === true ? undefined : setTimeout(() => controller.abort(), totalTimeoutMs)
  if (options.signal?.aborted === true) cancel()
  if (options.signal !== undefined) {
    // One signal serves many calls at once; Node would warn of a leak from the eleventh on.
    setMaxListeners(0, options.signal)
    options.signal.addEventListener('abort', cancel, { once: true })
  }
  const close = () => {
    clearTimeout(deadline)
    options.signal?.removeEventListener('abort', cancel)
  }
  return { state, close }
}
