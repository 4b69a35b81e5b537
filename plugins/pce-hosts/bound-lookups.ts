import type { LookupAddress, LookupAllOptions } from 'node:dns'

/** A name service: every address of a name. Rejects as `dns.lookup` does. */
export type Resolve = (hostname: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>

export interface Bounds {
  /** Names that are asked for at a time. */
  most?: number
  /** How long one who asks waits, in milliseconds. */
  patienceMs: number
}

/**
 * Half of the four threads that Node.js has for `dns.lookup`, and for files and ciphers too (UV_THREADPOOL_SIZE): names whose servers
 * never answer must leave some for everybody else.
 */
const MOST_AT_ONCE = 2

/**
 * The name service behind a bound: a name is asked for once by all who want it at the same time, few names at a time, and nobody waits
 * for ever. Then it rejects with an Error of code ETIMEOUT; a look-up that is under way keeps its place until it ends, since its thread
 * does.
 */
export function boundLookups(resolve: Resolve, { most = MOST_AT_ONCE, patienceMs }: Bounds): Resolve {
  const flights = new Map<string, Promise<readonly LookupAddress[]>>()
  const queue: (() => void)[] = []
  let running = 0

  async function takePlace(): Promise<void> {
    if (running < most) running += 1
    else await new Promise<void>((isMyTurn) => queue.push(isMyTurn))
  }

  /** The place of one that has ended is the next one's at once. */
  function leavePlace(): void {
    const next = queue.shift()
    if (next === undefined) running -= 1
    else next()
  }

  async function lookUp(hostname: string, options: LookupAllOptions): Promise<readonly LookupAddress[]> {
    const askedAt = performance.now()
    await takePlace()
    try {
      if (performance.now() - askedAt > patienceMs) throw timeUp(hostname)
      return await resolve(hostname, options)
    } finally {
      leavePlace()
    }
  }

  return (hostname, options) => {
    const { family, hints, order, verbatim } = options
    const key = JSON.stringify([hostname, family, hints, order, verbatim])
    let flight = flights.get(key)
    if (flight === undefined) {
      flight = lookUp(hostname, options).finally(() => flights.delete(key))
      flights.set(key, flight)
    }
    return withPatience(flight, patienceMs, hostname)
  }
}

function withPatience<T>(flight: Promise<T>, milliseconds: number, hostname: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(timeUp(hostname)), milliseconds)
  })
  return Promise.race([flight, over]).finally(() => clearTimeout(timer))
}

const timeUp = (hostname: string) =>
  Object.assign(new Error(`no answer of the name service for ${hostname}`), { code: 'ETIMEOUT' })
