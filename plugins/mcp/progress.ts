import type { ProgressUpdate } from '../../domain/call.js'

/** The passing of time, as progress and signs of life need it. */
export interface Timers {
  /** Milliseconds on any clock that only goes forward. */
  now(): number
  /** Runs once after `ms` milliseconds. Returns what cancels it. */
  after(ms: number, run: () => void): () => void
}

/** Between two notifications at least this long, so that a client is not flooded (D4). */
const SHORTEST_GAP_MS = 1000

/** After this long without news the last state is said again, so that a client does not give up. Under the promised 2 s. */
const HEARTBEAT_MS = 1800

export interface Progress {
  update(update: ProgressUpdate): void
  /** After this nothing is sent any more: the answer of the call comes next. */
  stop(): void
}

/**
 * Progress notifications of one call: one at once, then at most one a second and at least one every two, each with a greater
 * `progress` than the one before it (MCP utilities/progress). A heartbeat grows by a sliver that never reaches the total.
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
