import type { LookupAddress, LookupAllOptions } from 'node:dns'

/** A name service: a function that resolves a host name to all its addresses. It rejects as `dns.lookup` does. */
export type Resolve = (hostname: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>

export interface Patience {
  /** Maximum time, in milliseconds, for which the caller waits for the answer. */
  patienceMs?: number
  /**
   * Maximum age, in milliseconds, of a previous answer that the caller accepts if the lookup cannot start soon. With
   * the default 0, no previous answer is accepted.
   */
  oldestMs?: number
}

type BoundResolve = (...asked: [...Parameters<Resolve>, Patience?]) => ReturnType<Resolve>

/** The error code for a lookup that took too long. */
export const TIME_UP = 'ETIMEOUT'

/**
 * Maximum number of simultaneous lookups. `dns.lookup`, file operations and ciphers share four threads of Node.js
 * (UV_THREADPOOL_SIZE). Lookups of names whose servers never answer must leave some of these threads free.
 */
const MOST_AT_ONCE = 3
/**
 * Maximum number of simultaneous lookups of names that are new or were answered slowly last time. It is lower than
 * MOST_AT_ONCE, because anyone can invent any number of names that are answered slowly.
 */
const MOST_NEW_AT_ONCE = 2
/**
 * The fraction of the maximum waiting time within which an answer counts as prompt. If a lookup has not even started by
 * then, the caller gets the previous answer, provided that it is recent enough.
 */
const PROMPT = 0.2

/** A lookup that is running or waiting for its turn. */
interface Flight {
  hostname: string
  question: string
  ask: () => ReturnType<Resolve>
  state: 'waiting' | 'new name' | 'known name'
  /** One function for each caller that waits for this lookup. The function receives the answer. */
  listeners: Set<(answer: ReturnType<Resolve>) => void>
}

/**
 * Creates a function that looks names up and limits the use of the name service. Simultaneous requests with the same
 * question share one lookup, only a few lookups run at a time, and no caller waits for ever: after the time limit, the
 * function rejects with an Error whose code is ETIMEOUT. A lookup whose callers have given up is not started if it
 * still waits. If it is already running, it counts as running until it ends, because it occupies a thread. Names that
 * were answered promptly last time go first, and one of the simultaneous lookups is reserved for them.
 *
 * @param usualMs the default waiting time of a caller, in milliseconds.
 */
export function boundLookups(resolve: Resolve, usualMs: number): BoundResolve {
  /** The running and waiting lookups, in the order in which they were requested. */
  const flights = new Map<string, Flight>()
  const kept = keepAnswers()

  function startThoseWhoseTurnItIs(): void {
    for (let next = nextOf([...flights.values()], kept.has); next; next = nextOf([...flights.values()], kept.has)) {
      next.state = kept.has(next.hostname) ? 'known name' : 'new name'
      void run(next)
    }
  }

  async function run({ hostname, question, ask, listeners }: Flight): Promise<void> {
    const startedAt = performance.now()
    const answer = ask()
    const addresses = await answer.catch(() => [])
    const isPrompt = performance.now() - startedAt <= usualMs * PROMPT
    if (isPrompt && addresses.length > 0) kept.keep(hostname, question, addresses)
    else kept.forget(hostname)
    flights.delete(question)
    for (const tell of listeners) tell(answer)
    startThoseWhoseTurnItIs()
  }

  function waitFor(flight: Flight, { patienceMs = usualMs, oldestMs = 0 }: Patience): ReturnType<Resolve> {
    const { hostname, question, listeners } = flight
    return new Promise((settle, reject) => {
      const timers = [
        setTimeout(() => {
          const old = flight.state === 'waiting' ? kept.get(hostname, question, oldestMs) : undefined
          if (old !== undefined) settle(old)
        }, patienceMs * PROMPT),
        setTimeout(() => {
          listeners.delete(tell)
          if (listeners.size === 0 && flight.state === 'waiting') flights.delete(question)
          reject(timeUp(hostname))
        }, patienceMs),
      ]
      const tell = (answer: ReturnType<Resolve>) => {
        timers.forEach(clearTimeout)
        settle(answer)
      }
      listeners.add(tell)
    })
  }

  return (hostname, options, patience = {}) => {
    const { family, hints, order, verbatim } = options
    const question = JSON.stringify([hostname, family, hints, order, verbatim])
    const ask = async () => resolve(hostname, options)
    const flight = flights.get(question) ?? { hostname, question, ask, state: 'waiting', listeners: new Set() }
    flights.set(question, flight)
    const answer = waitFor(flight, patience)
    startThoseWhoseTurnItIs()
    return answer
  }
}

function nextOf(flights: readonly Flight[], isKnown: (hostname: string) => boolean): Flight | undefined {
  const running = flights.filter(({ state }) => state !== 'waiting')
  if (running.length >= MOST_AT_ONCE) return undefined
  const waiting = flights.filter((flight) => !running.some(({ hostname }) => hostname === flight.hostname))
  const isFull = running.filter(({ state }) => state === 'new name').length >= MOST_NEW_AT_ONCE
  return waiting.find(({ hostname }) => isKnown(hostname)) ?? (isFull ? undefined : waiting[0])
}

const timeUp = (hostname: string) =>
  Object.assign(new Error(`no answer from the name service for ${hostname}`), { code: TIME_UP })

/** The last answer of the name service for each name that was answered promptly. */
interface KeptAnswers {
  readonly has: (hostname: string) => boolean
  /** Returns the previous answer to the same question, or undefined if there is none or it is older than `oldestMs`. */
  readonly get: (hostname: string, question: string, oldestMs: number) => readonly LookupAddress[] | undefined
  /**
   * Stores an answer in place of the previous answer for the same name. If there are too many names, the oldest stored
   * answer is dropped.
   */
  readonly keep: (hostname: string, question: string, addresses: readonly LookupAddress[]) => void
  readonly forget: (hostname: string) => void
}

const MOST_NAMES = 1000

/** Creates the store of the last answers. It keeps the thousand answers that were stored last. */
function keepAnswers(): KeptAnswers {
  const kept = new Map<string, { question: string; addresses: readonly LookupAddress[]; at: number }>()
  return {
    has: (hostname) => kept.has(hostname),
    get(hostname, question, oldestMs) {
      const found = kept.get(hostname)
      return found?.question === question && performance.now() - found.at <= oldestMs ? found.addresses : undefined
    },
    keep(hostname, question, addresses) {
      kept.delete(hostname)
      kept.set(hostname, { question, addresses, at: performance.now() })
      const [oldest] = kept.keys()
      if (kept.size > MOST_NAMES && oldest !== undefined) kept.delete(oldest)
    },
    forget: (hostname) => void kept.delete(hostname),
  }
}
