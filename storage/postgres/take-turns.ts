import { CONNECTION_MS, isLate, isLocked } from './connect.js'

/**
 * Maximum number of statements of one caller that run at the same time. If the caller's row is locked, they occupy no
 * more connections than this.
 */
const MOST_AT_A_TIME = 2

interface Line {
  running: number
  waiting: { go: () => void; refuse: (error: Error) => void }[]
}

/**
 * Creates the function that runs the statements with the same key two at a time. Further statements wait in line
 * without a connection. If a running statement was stopped by a lock, the statements in line are refused with the error
 * of `busy`, because the same lock would stop them. If a running statement got no answer in time, the statements in
 * line are refused with the error of that statement. A statement that has waited in line for too long is refused with
 * the error of `busy`, too.
 */
export function takeTurns(busy: () => Error) {
  const lines = new Map<string, Line>()

  const wait = ({ waiting }: Line) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(one), 1)
        reject(busy())
      }, CONNECTION_MS)
      const one = {
        go: () => {
          clearTimeout(timer)
          resolve()
        },
        refuse: (error: Error) => {
          clearTimeout(timer)
          reject(error)
        },
      }
      waiting.push(one)
    })

  return async function inTurn<T>(key: string, run: () => Promise<T>): Promise<T> {
    const line = lines.get(key) ?? { running: 0, waiting: [] }
    lines.set(key, line)
    // A statement that ends passes its turn to the next one in line, so `running` does not change.
    if (line.running >= MOST_AT_A_TIME) await wait(line)
    else line.running++
    try {
      return await run()
    } catch (error) {
      const why = isLocked(error as Error) ? busy : isLate(error as Error) ? () => error as Error : undefined
      if (why !== undefined) for (const { refuse } of line.waiting.splice(0)) refuse(why())
      throw error
    } finally {
      const next = line.waiting.shift()
      if (next !== undefined) next.go()
      else if (--line.running === 0) lines.delete(key)
    }
  }
}
