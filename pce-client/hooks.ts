import type {
  AfterResponseHook,
  BeforeErrorHook,
  BeforeRequestHook,
  BeforeRetryHook,
  HTTPError,
  RequestError,
  RetryFunction,
} from 'got'
import type { CallState } from './call-state.js'
import { decodeBody } from './decode-body.js'
import { PceError } from './errors.js'
import { outcomeOf, toPceError, type Failure } from './map-failure.js'
import { findTlsWanted, findWrongScheme } from './recognise-scheme.js'
import { isLostBehindGateway, parseRetryAfter, waitBeforeRetry } from './retry-policy.js'
import type { ClientSettings } from './settings.js'

export interface PceHooks {
  /** Decides whether to repeat a failed attempt; a wrong scheme is recognised first, because it will not change. */
  decide: (failure: Failure, state: CallState) => Promise<boolean>
  /** Must be called with each answer of the PCE. @throws {PceError} if it comes from a port that speaks only TLS. */
  noteAnswer: (status: number, body: string, state: CallState) => void
  calculateDelay: RetryFunction
  beforeRequest: BeforeRequestHook
  beforeRetry: BeforeRetryHook
  afterResponse: AfterResponseHook
  beforeError: BeforeErrorHook
}

/**
 * Creates got hooks for the retry policy and the error mapping. got calls `calculateDelay` after every failed attempt;
 * there the policy decides whether to retry. The wait itself happens in `beforeRetry`, so that `onRetry` is called
 * before the wait, and so that the wait uses the client's timers and ends when the call is cancelled or its time has
 * run out.
 */
export function createHooks(settings: ClientSettings): PceHooks {
  // Once the PCE has answered, the configured scheme (http or https) is known to be right.
  let hasAnswered = false

  async function decide(failure: Failure, state: CallState): Promise<boolean> {
    if (failure instanceof Error && !hasAnswered && state.ended === undefined) {
      const isLost = outcomeOf(failure, state) === 'lost'
      const mismatch = await findWrongScheme(failure, state, settings, isLost)
      if (mismatch !== undefined) {
        state.ended = { error: mismatch, retry: false }
        state.connected = false
      }
    }
    return decideRetry(settings, state, failure)
  }

  function noteAnswer(status: number, body: string, state: CallState): void {
    const mismatch = findTlsWanted(status, body, state)
    if (mismatch !== undefined) {
      state.connected = false
      throw mismatch
    }
    hasAnswered = true
  }

  return {
    decide,
    noteAnswer,
    beforeRequest: (options) => {
      const state = stateOf(options)
      state.ended = undefined
      const start = () => {
        state.attempts += 1
        if (settings.authorization !== undefined) options.headers.authorization ??= settings.authorization
      }
      const turn = settings.pacer?.takeTurn(state.startedAt + state.totalTimeoutMs, () => state.signal)
      return turn === undefined ? start() : turn.then(start)
    },
    calculateDelay: async ({ error }) => ((await decide(failureOf(error), stateOf(error.options))) ? 1 : 0),
    beforeRetry: (error) => waitForRetry(settings, stateOf(error.options), failureOf(error)),
    afterResponse: async (response) => {
      const { statusCode, headers } = response
      const state = stateOf(response.request.options)
      refuseProxyAnswer(statusCode, state)
      try {
        const bounds = { ...settings.bounds.body, bytes: state.maxBytes }
        response.body = await decodeBody(response.rawBody, headers['content-encoding'], bounds)
        if (statusCode < 400) refuseForeignAnswer(statusCode, headers['content-type'])
      } catch (error) {
        // If the body of an error answer cannot be read, only the answer's status is reported, since it says more than
        // the read error would.
        if (statusCode < 400) throw error
        response.body = ''
      }
      noteAnswer(statusCode, response.body as string, state)
      return response
    },
    beforeError: (error) => toPceError(failureOf(error), stateOf(error.options)),
  }
}

/** Decides whether to repeat a failed attempt, and records the wait in the state if so. */
function decideRetry(settings: ClientSettings, state: CallState, failure: Failure): boolean {
  const now = settings.timers.now()
  const outcome = outcomeOf(failure, state)
  const retryAfter = failure instanceof Error ? undefined : failure.headers['retry-after']
  const wait = waitBeforeRetry({
    nature: state.nature,
    outcome,
    retryAfterMs: parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, now),
    retriesMade: state.attempts - 1,
    retryCount: state.retryCount,
    elapsedMs: now - state.startedAt,
    totalTimeoutMs: state.totalTimeoutMs,
    random: settings.timers.random(),
  })
  if (wait === null) return false
  // Status 429 is the only answer that guarantees that the request was not carried out.
  if (outcome !== 429 && (state.connected || outcome !== 'lost')) state.mayHaveHappened = true
  if (outcome === 'lost' ? state.connected : isLostBehindGateway(outcome)) state.answerLost = true
  if (outcome === 500) state.failedInside = true
  state.waitMs = wait
  state.waitedMs += wait
  // Reset before the wait: if the call is cancelled while it waits, it must not look as if its next attempt had reached
  // the server.
  state.connected = false
  return true
}

/**
 * Calls `onRetry`, then waits for `state.waitMs` milliseconds. @throws the signal's reason if the signal aborts during
 * the wait.
 */
export async function waitForRetry(settings: ClientSettings, state: CallState, failure: Failure): Promise<void> {
  const { method, path, waitMs } = state
  const event = { method, path, attempt: state.attempts, waitMs }
  const isError = failure instanceof Error
  const code = isError ? (state.ended?.error.reason ?? (failure as NodeJS.ErrnoException).code) : undefined
  try {
    settings.onRetry?.(isError ? { ...event, code } : { ...event, status: failure.status })
  } catch {
    // An error in the listener must not prevent the retry.
  }
  await settings.timers.sleep(waitMs, state.signal)
}

/**
 * Checks that an answer is not a refusal (407) by a forward proxy. @throws {PceError} `unreachable` if it is, since the
 * request has then never reached the PCE.
 */
export function refuseProxyAnswer(status: number, state: CallState): void {
  if (status !== 407 || state.via === undefined) return
  state.connected = false
  throw new PceError('unreachable', 'no answer: the proxy refused the request (407)', { reason: 'PROXY_REFUSED' })
}

/**
 * Checks that an answer comes from a PCE.
 *
 * @throws {PceError} `invalid_response` for answers that no PCE gives: a redirect, or an HTML page such as a login page
 *   or a portal.
 */
export function refuseForeignAnswer(status: number, contentType: string | undefined): void {
  if (status >= 300) {
    throw new PceError('invalid_response', `the PCE answered with a redirect (${status}), which is not followed`)
  }
  if (contentType?.includes('text/html') === true) {
    throw new PceError(
      'invalid_response',
      'a web page came back instead of the API (a login page or a proxy in between?)',
    )
  }
}

function stateOf(options: { context: Record<string, unknown> }): CallState {
  return options.context.call as CallState
}

function failureOf(error: RequestError): Failure {
  const response = (error as Partial<HTTPError>).name === 'HTTPError' ? error.response : undefined
  if (response === undefined) return error
  return {
    status: response.statusCode,
    statusText: response.statusMessage ?? '',
    headers: response.headers,
    body: typeof response.body === 'string' ? response.body : '',
  }
}
