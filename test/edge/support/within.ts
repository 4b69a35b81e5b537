import { setTimeout as wait } from 'node:timers/promises'

const PATIENCE_MS = 120_000
const BETWEEN_LOOKS_MS = 10

/**
 * The promise, or Error when nothing has come of it for so long that nothing will: a failure with a name instead of a hanging test.
 * `patience` in milliseconds.
 */
export function within<T>(promise: Promise<T>, what: string, patience = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`never: ${what}`)), patience)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** What `look` finds, once it finds anything; Error when that takes as long as `within` waits. It stops looking then. */
export async function found<T>(
  look: () => T | Promise<T>,
  what: string,
  patience = PATIENCE_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  const end = performance.now() + patience
  while (performance.now() < end) {
    const seen = await look()
    if (seen !== undefined && seen !== null && seen !== false) return seen as NonNullable<Exclude<T, false>>
    await wait(BETWEEN_LOOKS_MS)
  }
  throw new Error(`never: ${what}`)
}
