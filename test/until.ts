const PATIENCE_MS = 30_000

/** Waits, turn by turn of the event loop, for what a test has made happen. @throws {Error} when it has not within 30 s. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('it never happened')
    await new Promise((resolve) => setImmediate(resolve))
  }
}
