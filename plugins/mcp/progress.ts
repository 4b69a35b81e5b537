import type { ProgressUpdate } from '../../domain/call.js'

/** The clock and timers for progress and heartbeats. */
export interface Timers {
  /** Returns the time of a clock that never goes back, in milliseconds. */
  now(): number
  /** Runs a function once after `ms` milliseconds. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
}

/** Minimum interval between two notifications, in milliseconds, so that a client does not get too many (D4). */
const SHORTEST_GAP_MS = 1000

/**
 * The time, in milliseconds, after which the latest progress is sent again as a heartbeat if there is no newer
 * progress, so that the client does not give up. It is shorter than the 2 s that `startProgress` promises.
 */
const HEARTBEAT_MS = 1800

export interface Progress {
  update(update: ProgressUpdate): void
  /** Stops the notifications. It is called before the answer is sent. */
  stop(): void
}

/**
 * Sends the progress notifications of one call: the first one at once, then at most one a second and at least one every
 * two seconds. Each notification has a greater `progress` than the one before it (MCP utilities/progress). A heartbeat
 * increases `progress` by a fraction that is too small for it to ever reach the total.
 */
export function startProgress(send: (update: ProgressUpdate) => void, timers: Timers): Progress {
  let latest: ProgressUpdate = { progress: 0 }
  let sent = -1
  let sentAt = 0
  let isNews = false
  let stopped = false
  let cancelTimer = () => {}

  function emit(): void {
    cancelTimer()
    const { total } = latest
    const sliver = total !== undefined && sent < total ? (total - Math.max(sent, 0)) / 1000 : 0.001
    sent = latest.progress > sent ? latest.progress : sent + sliver
    sentAt = timers.now()
    isNews = false
    send({ ...latest, progress: sent })
    cancelTimer = timers.after(HEARTBEAT_MS, emit)
  }

  emit()
  return {
    update(update) {
      if (stopped) return
      latest = update
      if (isNews) return
      isNews = true
      cancelTimer()
      cancelTimer = timers.after(Math.max(0, sentAt + SHORTEST_GAP_MS - timers.now()), emit)
    },
    stop() {
      stopped = true
      cancelTimer()
    },
  }
}
