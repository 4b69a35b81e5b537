import type { LookupAddress, LookupAllOptions } from 'node:dns'

/** A name service: every address of a name. Rejects as `dns.lookup` does. */
export type Resolve = (hostname: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>

export interface Patience {
  /** How long this one waits, in milliseconds. */
  patienceMs?: number
  /** The greatest age of an old answer that replaces one still waiting its turn, in milliseconds. Default 0: none does. */
  oldestMs?: number
}

type BoundResolve = (...asked: [...Parameters<Resolve>, Patience?]) => ReturnType<Resolve>

/** The code of the Error for a look-up that took too long. */
export const TIME_UP = 'ETIMEOUT'

/**
 * Of the four threads that Node.js has for `dns.lookup`, and for files and ciphers too (UV_THREADPOOL_SIZE): names whose servers
 * never answer must leave some for everyone else.
 */
const MOST_AT_ONCE = 3
/** Of those, for names that had no prompt answer when they were asked for last: anyone can make up any number of slow ones. */
const MOST_NEW_AT_ONCE = 2
/** The share of the patience that a prompt answer takes at most; after it an old answer is used. */
const PROMPT = 0.2

/** A question to the name service, under way or waiting for its turn. */
interface Flight {
  hostname: string
  question: string
  ask: () => ReturnType<Resolve>
  state: 'waiting' | 'new name' | 'known name'
  /** Those who wait for the answer. */
  listeners: Set<(answer: ReturnType<Resolve>) => void>
}

/**
 * The name service behind a bound: a name is asked for once by all who want it at the same time, few names at a time, each of them once at
 * a time, and nobody waits for ever. Then it rejects with an Error of code ETIMEOUT; a look-up that is under way keeps its place until it
 * ends, since its thread does, and one that nobody waits for any more is not begun. Names that were answered promptly the last time go
 * first, and have a place that the others cannot take.
 *
 * @param usualMs the patience of those who name none, in milliseconds.
 */
export function boundLookups(resolve: Resolve, usualMs: number): BoundResolve {
  /** In the order in which they were asked for. */
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

/** What names last led to. */
interface KeptAnswers {
  readonly has: (hostname: string) => boolean
  /** The answer to the same question, unless it is older than so many milliseconds. */
  readonly get: (hostname: string, question: string, oldestMs: number) => readonly LookupAddress[] | undefined
  /** In place of the one before; the name that was kept the longest ago goes when there are too many. */
  readonly keep: (hostname: string, question: string, addresses: readonly LookupAddress[]) => void
  readonly forget: (hostname: string) => void
}

const MOST_NAMES = 1000

/** For the names that were kept last, a thousand of them. */
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
