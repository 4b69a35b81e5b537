export interface HealthCheck {
  name: string
  /** Throws or rejects when the thing does not work now. */
  run: () => void | Promise<void>
}

type Failure = { name: string; error: unknown } | null

export interface ReadinessPorts {
  /** The answer has changed: the first check that failed, or null when all pass again. */
  changed: (failed: Failure) => void
  /** Milliseconds. */
  now?: () => number
  /** How long all checks together may take, in milliseconds. */
  patienceMs?: number
}

/** Anyone may ask, without a token: so the checks run at most once in this time, in milliseconds. */
const FRESH_MS = 1000
/** Shorter than those who ask wait as a rule. */
const PATIENCE_MS = 3000

/**
 * The first check that fails, null when every one passes. Concurrent callers share one run of the checks, and while one check hangs no
 * new run starts: after the time limit it has failed, at once, until it has ended.
 */
export function createReadiness(checks: readonly HealthCheck[], ports: ReadinessPorts): () => Promise<Failure> {
  const { changed, now = () => performance.now(), patienceMs = PATIENCE_MS } = ports
  let wasReady = true
  let last: { at: number; isRunning: boolean; answer: Promise<Failure> } | undefined

  function begin() {
    let current = ''
    const runAll = async (): Promise<Failure> => {
      for (const { name, run } of checks) {
        current = name
        try {
          await run()
        } catch (error) {
          return { name, error }
        }
      }
      return null
    }
    const running = runAll()
    let timer: NodeJS.Timeout | undefined
    const timeUp = new Promise<Failure>((resolve) => {
      const error = new Error(`no answer in ${patienceMs} ms`)
      timer = setTimeout(() => resolve({ name: current, error }), patienceMs)
    })
    const round = { at: now(), isRunning: true, answer: Promise.race([running, timeUp]).then(tell) }
    void running.then(() => {
      clearTimeout(timer)
      round.isRunning = false
    })
    return round
  }

  function tell(failure: Failure): Failure {
    const isReady = failure === null
    if (isReady !== wasReady) changed(failure)
    wasReady = isReady
    return failure
  }

  return () => {
    if (last === undefined || (!last.isRunning && now() - last.at >= FRESH_MS)) last = begin()
    return last.answer
  }
}
