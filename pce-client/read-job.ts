import { PceError } from './errors.js'
import type { ClientSettings } from './settings.js'

/** Waits on the client's timers. @throws {PceError} `aborted` when the signal ends it. */
export async function sleep({ timers }: ClientSettings, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    if (signal?.aborted !== true) await timers.sleep(ms, signal)
  } catch (error) {
    if (signal?.aborted !== true) throw error
  }
  if (signal?.aborted === true) throw new PceError('aborted', 'the call was cancelled', { cause: signal.reason })
}

/** Where a finished job or query left its result: `{href}`, or the bare path of traffic queries. */
export function resultHref(result: unknown): string | undefined {
  const href = typeof result === 'object' && result !== null ? (result as { href?: unknown }).href : result
  return typeof href === 'string' && href !== '' ? href : undefined
}

/** Why a job or query failed, in the PCE's words, clipped. */
export function messageOf(result: unknown): string {
  const message = typeof result === 'object' && result !== null ? (result as { message?: unknown }).message : result
  return typeof message === 'string' && message !== '' ? message.slice(0, 1000) : 'the PCE gave no reason'
}
