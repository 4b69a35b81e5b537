import { setMaxListeners } from 'node:events'
import { PceError, PceIntegerError } from '../errors.js'
import { readCallTimeout, type ClientSettings } from '../settings.js'
import type { StreamTrafficOptions, TrafficQueryProgress } from '../types.js'

const DEFAULT_DEADLINE_SECONDS = 600

/** One running query: its deadline and the caller's signal as one, and its progress. */
export interface TrafficRun {
  readonly signal: AbortSignal
  readonly request: {
    signal: AbortSignal
    requestId: string | undefined
    headers: Record<string, string> | undefined
    includeOrg: false
  }
  remainingMs(): number
  report(progress: Omit<TrafficQueryProgress, 'elapsedMs' | 'flows'> & { flows?: number }): void
  /** What to throw for what went wrong: the deadline and the caller's cancellation go by their own names. */
  explain(error: unknown): unknown
  close(): void
}

/**
 * The deadline shows as an aborted signal, `totalTimeoutMs` too where that ends sooner.
 *
 * @throws {PceIntegerError} for a time that is none.
 */
export function beginTrafficRun({ timers }: ClientSettings, options: StreamTrafficOptions): TrafficRun {
  const startedAt = timers.now()
  const seconds = options.deadlineSeconds ?? DEFAULT_DEADLINE_SECONDS
  if (!(seconds > 0)) throw new PceIntegerError('deadlineSeconds must be a number above 0')
  const totalMs = readCallTimeout(options.totalTimeoutMs) ?? Infinity
  const limitMs = Math.min(seconds * 1000, totalMs)
  const controller = new AbortController()
  const cancel = () => controller.abort(options.signal?.reason)
  const timeout =
    totalMs < seconds * 1000
      ? new PceError('deadline', `the traffic query is not done within ${totalMs / 1000} s`, { reason: 'ETIMEDOUT' })
      : new PceError('traffic_query_timeout', `the traffic query was given up after ${seconds} s`)
  if (options.signal?.aborted === true) cancel()
  if (options.signal !== undefined) {
    // As for every call: one signal may end many queries.
    setMaxListeners(0, options.signal)
    options.signal.addEventListener('abort', cancel, { once: true })
  }
  const deadline = setTimeout(() => controller.abort(timeout), Math.min(limitMs, 2 ** 31 - 1))
  return {
    signal: controller.signal,
    request: { signal: controller.signal, requestId: options.requestId, headers: options.headers, includeOrg: false },
    remainingMs: () => {
      const remaining = startedAt + limitMs - timers.now()
      if (remaining <= 0) controller.abort(timeout)
      return remaining
    },
    report: (progress) => options.onProgress?.({ flows: 0, ...progress, elapsedMs: timers.now() - startedAt }),
    explain: (error) => {
      const { aborted } = controller.signal
      const reason: unknown = controller.signal.reason
      if (!aborted || !(error instanceof PceError || error === reason)) return error
      if (reason === timeout) return timeout
      return new PceError('aborted', 'the traffic query was cancelled', { cause: reason })
    },
    close: () => {
      clearTimeout(deadline)
      options.signal?.removeEventListener('abort', cancel)
    },
  }
}
