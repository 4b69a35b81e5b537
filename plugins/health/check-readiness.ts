export interface Check {
  name: string
  /** Throws or rejects when the thing does not work now. */
  run: () => void | Promise<void>
}

/** Anybody may ask, without a token: so the checks run at most once in this time, in milliseconds. */
const FRESH_MS = 1000

/** Whether every check passes. Tells when the answer changes, with the first check that failed. */
export function createReadiness(
  checks: readonly Check[],
  ports: { changed(failed: { name: string; error: unknown } | null): void; now?: () => number },
): () => Promise<boolean> {
  const now = ports.now ?? (() => performance.now())
  let wasReady = true
  let last: { at: number; answer: Promise<boolean> } | undefined

  async function check(): Promise<boolean> {
    for (const { name, run } of checks) {
      try {
        await run()
      } catch (error) {
        if (wasReady) ports.changed({ name, error })
        return (wasReady = false)
      }
    }
    if (!wasReady) ports.changed(null)
    return (wasReady = true)
  }

  return () => {
    if (last === undefined || now() - last.at >= FRESH_MS) last = { at: now(), answer: check() }
    return last.answer
  }
}
