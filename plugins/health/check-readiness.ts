import type { HealthCheck } from '../../schemas/http.js'

type Failure = { name: string; error: unknown } | null

export interface ReadinessPorts {
  /** Called when the result changes: with the first failed check, or with null if all checks pass again. */
  changed: (failed: Failure) => void
  /** Returns the time of a clock in milliseconds. Only differences matter, so any clock will do. */
  now?: () => number
  /** The time limit for all checks together, in milliseconds. */
  patienceMs?: number
}

/**
 * Minimum interval between two runs of the checks, in milliseconds. It is needed because anyone may cause such a run
 * without a token.
 */
const FRESH_MS = 1000
/**
 * Minimum interval between two runs of the checks after a failure, in milliseconds. It is shorter, so that the end of
 * an outage is noticed soon.
 */
const FAILED_MS = 250
/**
 * The default time limit for all checks together, in milliseconds. It is shorter than the time for which probes usually
 * wait.
 */
const PATIENCE_MS = 3000

/**
 * Creates the function that returns the first failing check, or null if all checks pass. Simultaneous callers share one
 * run of the checks, and no new run starts while a check hangs. If a check hangs until the time limit, it counts as
 * failed until it ends, and later callers get this result at once.
 */
export function createReadiness(checks: readonly HealthCheck[], ports: ReadinessPorts): () => Promise<Failure> {
  const { changed, now = () => performance.now(), patienceMs = PATIENCE_MS } = ports
  let wasReady = true
  let last: { at: number; isRunning: boolean; freshMs: number; answer: Promise<Failure> } | undefined

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
    const round = { at: now(), isRunning: true, freshMs: FRESH_MS, answer: Promise.race([running, timeUp]) }
    void running.then((failure) => {
      clearTimeout(timer)
      round.isRunning = false
      if (failure !== null) round.freshMs = FAILED_MS
    })
    return round
  }

  function tell(failure: Failure): Failure {
    const isReady = failure === null
    if (isReady !== wasReady) changed(failure)
    wasReady = isReady
    return failure
  }

  function findKnown(): Failure {
    for (const { name, findProblem } of checks) {
      const error = findProblem?.() ?? null
      if (error !== null) return { name, error }
    }
    return null
  }

  return () => {
    // The checks are run even while a problem is known, because a run may show that the problem is over.
    if (last === undefined || (!last.isRunning && now() - last.at >= last.freshMs)) last = begin()
    const known = findKnown()
    return (known === null ? last.answer : Promise.resolve(known)).then(tell)
  }
}
