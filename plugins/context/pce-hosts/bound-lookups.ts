import type { LookupAddress, LookupAllOptions } from 'node:dns'

/** A name service that returns every address of a name. Rejects as `dns.lookup` does. */
export type Resolve = (hostname: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>

export interface Patience {
  /** How long this caller waits, in milliseconds. */
  patienceMs?: number
  /**
   * Maximum age, in milliseconds, of a previous answer that may be used while the lookup waits for its turn. The
   * default 0 means that no previous answer is used.
   */
  oldestMs?: number
}

type BoundResolve = (...asked: [...Parameters<Resolve>, Patience?]) => ReturnType<Resolve>

/** Error code for a lookup that took too long. */
export const TIME_UP = 'ETIMEOUT'

/**
 * Maximum number of simultaneous lookups. Node.js has four threads for `dns.lookup`, which also handle files and
 * ciphers (UV_THREADPOOL_SIZE); names whose servers never answer must leave some of the threads free.
 */
const MOST_AT_ONCE = 3
/**
 * Maximum number of simultaneous lookups for names that are new or did not get a prompt answer last time. It is lower
 * because anyone can make up any number of slow names.
 */
const MOST_NEW_AT_ONCE = 2
/**
 * The share of the waiting time within which an answer counts as prompt. After that, a caller whose lookup has not
 * started gets a previous answer, if one is recent enough.
 */
const PROMPT = 0.2

/** A lookup that is running or waiting for its turn. */
interface Flight {
  hostname: string
  question: string
  ask: () => ReturnType<Resolve>
  state: 'waiting' | 'new name' | 'known name'
  /** The functions that receive the answer. */
  listeners: Set<(answer: ReturnType<Resolve>) => void>
}

/**
 * Limits the use of the name service. Simultaneous requests for a name share one lookup, only a few lookups run at a
 * time, and no caller waits for ever: after the time limit, the function rejects with an Error of code ETIMEOUT. A
 * running lookup keeps its place until it ends, because it occupies a thread; a waiting lookup that nobody waits for
 * any more is not started. Names that were answered promptly last time go first, and have one place reserved for them.
 *
 * @param usualMs the default patience, in milliseconds.
 */
export function boundLookups(resolve: Resolve, usualMs: number): BoundResolve {
  /** The lookups that are running or waiting, in the order of their requests. */
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

/** The last answer of the name service for each name. */
interface KeptAnswers {
  readonly has: (hostname: string) => boolean
  /** Returns the previous answer to the same question, unless it is older than `oldestMs`. */
  readonly get: (hostname: string, question: string, oldestMs: number) => readonly LookupAddress[] | undefined
  /**
   * Stores an answer in place of the previous one. If there are too many names, the answer that was stored longest ago
   * is dropped.
   */
  readonly keep: (hostname: string, question: string, addresses: readonly LookupAddress[]) => void
  readonly forget: (hostname: string) => void
}

const MOST_NAMES = 1000

/** Creates the store of the last answers. It holds the thousand names whose answers were stored last. */
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
