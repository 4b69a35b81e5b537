import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import { connectionHint } from '../../schemas/errors.js'
import type { RetryLog } from './connect-pce.js'

/**
 * Watches the PCE key in shared mode, where all callers use the same key. If the PCE refuses the key, the server starts
 * nevertheless and counts as ready (D105). The refusal is reported once in the log, and in the answers of /readyz.
 */
export interface KeyWatch {
  /** Asks the PCE once whether it accepts the key. Never rejects. */
  readonly check: () => Promise<void>
  /** Must be called with the status of every answer of the PCE. */
  readonly note: (status: number) => void
  /**
   * Returns the problem with the PCE key, for /readyz. Returns null if the PCE accepts the key or nothing is known yet.
   * While the key is refused, the PCE is asked again from time to time.
   */
  readonly problem: () => string | null
  readonly close: () => void
}

export interface KeyLog extends RetryLog {
  info(facts: object, message: string): void
}

/**
 * Minimum interval, in milliseconds, between two attempts with a refused key. It is needed because each request to
 * /readyz may cause an attempt, and anyone may send such requests.
 */
const AGAIN_MS = 30_000
const PATIENCE_MS = 10_000

const REFUSED: Record<number, { problem: string; message: string; remedy: string }> = {
  401: {
    problem: 'refuses API_KEY and API_SECRET (401)',
    message: 'The PCE refuses API_KEY and API_SECRET (401): no call that needs the PCE will work',
    remedy: 'Check both, whether the key still exists on the PCE, and that PCE_HOST is the right PCE; then restart.',
  },
  403: {
    problem: 'gives API_KEY no access to its organisation (403)',
    message: 'The PCE knows API_KEY and gives it no access to the organisation (403)',
    remedy: 'Check PCE_ORG_ID, and the role of the service account on the PCE.',
  },
}

/** Matches the part of an error's hint that does not apply in shared mode, because users do not register keys there. */
const REGISTERED = /(: in PCE_HOST)?, or (in )?what was registered(?=\.)/

/**
 * Creates the watch on the PCE key.
 *
 * @param now returns milliseconds since the epoch.
 */
export function watchKey(pce: () => PceClient, log: KeyLog, now: () => number): KeyWatch {
  const closing = new AbortController()
  let refusedWith: number | null = null
  let checking: Promise<void> | null = null
  let checkedAt = -Infinity

  function refuse(status: number): void {
    const told = REFUSED[status]
    if (told === undefined || refusedWith === status) return
    refusedWith = status
    log.warn({ http_status: status, remedy: told.remedy }, told.message)
  }

  async function ask(): Promise<void> {
    try {
      await pce().mustConnect({ signal: closing.signal, totalTimeoutMs: PATIENCE_MS })
      if (refusedWith !== null) log.info({}, 'the PCE takes API_KEY and API_SECRET again')
      refusedWith = null
    } catch (error) {
      if (error instanceof PceApiError && error.status in REFUSED) return refuse(error.status)
      if (closing.signal.aborted || refusedWith !== null || !(error instanceof PceError)) return
      const remedy = connectionHint(error)?.replace('Nothing was changed. ', '').replace(REGISTERED, '')
      log.warn({ ...(remedy !== undefined && { remedy }) }, `The PCE does not answer as it should: ${error.message}`)
    }
  }

  function check(): Promise<void> {
    checkedAt = now()
    return (checking ??= ask().finally(() => (checking = null)))
  }

  return {
    check,
    note: (status) => (status === 401 ? refuse(status) : undefined),
    problem() {
      if (refusedWith === null) return null
      if (now() - checkedAt >= AGAIN_MS) void check()
      return REFUSED[refusedWith]!.problem
    },
    close: () => closing.abort(),
  }
}
