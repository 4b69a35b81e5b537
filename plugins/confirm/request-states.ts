import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { RequestFacts, RequestState, RequestStates } from '../../schemas/approvals.js'
import type { UsedTokens } from '../../schemas/state.js'
import { attempt } from './attempt.js'
import { createSeal, type MasterKeys, parseSealed } from './seals.js'

export interface RequestStatesOptions {
  /** Absent, a random key, whose states end with the process. */
  keys?: MasterKeys
  /** Names the server and its state, as confirm tokens have it. */
  audience: string
  /** Absent, what was used is remembered in this process alone. */
  usedTokens?: Pick<UsedTokens, 'claim'>
  /** Milliseconds since the epoch. */
  now: () => number
}

const LIFETIME_MS = 15 * 60 * 1000
const LONGEST = 8192

/** States that a client brings back with the answer to a question: as they were given, for the same call of the same caller, once (D148). */
export function createRequestStates({ keys, audience, usedTokens, now }: RequestStatesOptions): RequestStates {
  const states = createSeal('requestState', keys ?? { hmacKey: randomBytes(32) })
  const used = usedTokens ?? rememberHere(now)
  const factsOf = (text: string) => [audience, text]
  return {
    seal(state) {
      const whole = { ...state, nonce: randomBytes(16).toString('hex'), until: now() + LIFETIME_MS }
      return Buffer.from(states.seal(JSON.stringify(whole), factsOf)).toString('base64url')
    },
    async open(sealed, facts) {
      if (sealed.length > LONGEST) return null
      const bytes = Buffer.from(sealed, 'base64url')
      // In its one spelling, so that no second one passes for another state.
      if (bytes.toString('base64url') !== sealed) return null
      const opened = parseSealed<RequestState & Sealed>(states.open(bytes.toString('utf8'), factsOf))
      if (opened === null || opened.until <= now() || !isSame(opened, facts)) return null
      const { nonce, until, ...state } = opened
      return (await attempt(() => used.claim(`request-state:${nonce}`, until))) ? state : null
    },
  }
}

interface Sealed {
  nonce: string
  /** Milliseconds since the epoch. */
  until: number
}

const isSame = (one: RequestFacts, other: RequestFacts): boolean =>
  one.owner?.iss === other.owner?.iss &&
  one.owner?.sub === other.owner?.sub &&
  one.method === other.method &&
  one.name === other.name &&
  one.paramsHash === other.paramsHash

/** For one client, whose states live for minutes. */
function rememberHere(now: () => number): Pick<UsedTokens, 'claim'> {
  const used = new LRUCache<string, true>({ max: 10_000, ttl: LIFETIME_MS, ttlResolution: 0, perf: { now } })
  return {
    claim(id) {
      if (used.has(id)) return Promise.resolve(false)
      used.set(id, true)
      return Promise.resolve(true)
    },
  }
}
