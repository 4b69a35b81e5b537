import type { ToolContext, WriteTurn } from '../../domain/call.js'
import { ToolError } from '../../schemas/errors.js'

/**
 * The right of one call to add something to an object while no other call does. `others` is a plain list, so that it
 * can be sent to another thread.
 */
export interface Turn {
  /** The hrefs that other calls have added to the object since this call began. */
  others: readonly string[]
  /** Ends the turn. `written` contains the hrefs of what was added. */
  leave: (written: readonly string[]) => void
}

/** Makes the calls of this process take turns when they add something to the same object (D225). */
export interface WriteOrder {
  /** Marks the beginning of a call. Returns the current time on this order's own logical clock. */
  begin(): number
  /**
   * Waits until no other call is adding anything to this object, and resolves with the turn. Rejects with `busy` if
   * that takes too long, and with the signal's reason if the signal is aborted. In both cases, the call leaves the
   * queue.
   */
  enter(object: string, call: EnteringCall): Promise<Turn>
}

interface EnteringCall {
  begun: number
  signal: AbortSignal
}

/**
 * Maximum time, in milliseconds, for which a call waits for its turn. An addition usually takes a few requests; a
 * ringfence with many rules takes a minute.
 */
const WAIT_MS = 60_000
/** Maximum number of calls that wait for their turn to add to the same object. */
const MOST_WAITING = 50
/**
 * Maximum number of objects whose latest additions are remembered, and maximum number of additions that are remembered
 * for each of them.
 */
const MOST_OBJECTS = 1_000
const MOST_ADDITIONS = 200

interface Addition {
  at: number
  hrefs: readonly string[]
}

/** Creates the write order of a process. Calls get their turns in the order of their arrival. */
export function createWriteOrder({ waitMs = WAIT_MS }: { waitMs?: number } = {}): WriteOrder {
  let clock = 0
  /**
   * For each object, the calls that wait for their turn to add something to it. An object has an entry as long as a
   * call has the turn.
   */
  const waiting = new Map<string, (() => void)[]>()
  const added = new Map<string, Addition[]>()

  function takeTurn(object: string, begun: number): Turn {
    let isOver = false
    const since = (added.get(object) ?? []).filter(({ at }) => at > begun)
    return {
      others: since.flatMap(({ hrefs }) => hrefs),
      leave(written) {
        if (isOver) return
        isOver = true
        if (written.length > 0) remember(object, written)
        const queue = waiting.get(object)
        const next = queue?.shift()
        if (next === undefined) waiting.delete(object)
        else next()
      },
    }
  }

  function remember(object: string, hrefs: readonly string[]): void {
    const known = added.get(object) ?? []
    added.delete(object)
    added.set(object, [...known, { at: ++clock, hrefs }].slice(-MOST_ADDITIONS))
    const [oldest] = added.keys()
    if (added.size > MOST_OBJECTS && oldest !== undefined) added.delete(oldest)
  }

  return {
    begin: () => ++clock,
    enter(object, { begun, signal }) {
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      const queue = waiting.get(object)
      if (queue === undefined) {
        waiting.set(object, [])
        return Promise.resolve(takeTurn(object, begun))
      }
      if (queue.length >= MOST_WAITING) return Promise.reject(busy())
      return new Promise((resolve, reject) => {
        const quit = (reason: Error) => {
          forget()
          queue.splice(queue.indexOf(admit), 1)
          reject(reason)
        }
        const giveUp = () => quit(signal.reason as Error)
        const timer = setTimeout(() => quit(busy()), waitMs)
        const forget = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', giveUp)
        }
        const admit = () => {
          forget()
          resolve(takeTurn(object, begun))
        }
        signal.addEventListener('abort', giveUp, { once: true })
        queue.push(admit)
      })
    },
  }
}

const busy = () =>
  new ToolError('busy', 'Other calls are adding to the same object. Nothing was written.', { retry_after_seconds: 10 })

/**
 * Creates the function `inOrder` of a tool's context. If the call already has the turn for the object, the new work
 * becomes part of that turn, so that a call never waits for itself.
 */
export function inOrderBy(enter: (object: string) => Promise<Turn>): ToolContext['inOrder'] {
  const held = new Map<string, WriteTurn>()
  return async (object, work) => {
    const own = held.get(object)
    if (own !== undefined) return work(own)
    const { others, leave } = await enter(object)
    const written: string[] = []
    const turn: WriteTurn = { others: new Set(others), note: (href) => void written.push(href) }
    held.set(object, turn)
    try {
      return await work(turn)
    } finally {
      held.delete(object)
      leave(written)
    }
  }
}
