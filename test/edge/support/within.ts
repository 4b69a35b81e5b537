const PATIENCE_MS = 30_000

/** The promise, or Error when nothing has come of it for so long that nothing will: a failure with a name instead of a hanging test. */
export function within<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`never: ${what}`)), PATIENCE_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
