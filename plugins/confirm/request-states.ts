import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { RequestFacts, RequestState, RequestStates } from '../../schemas/approvals.js'
import type { UsedTokens } from '../../schemas/state.js'
import { attempt } from './attempt.js'
import { createSeal, type MasterKeys, parseSealed } from './seals.js'

export interface RequestStatesOptions {
  /**
   * The operator's keys. If they are absent, a random key is used, and all states become invalid when the process ends.
   */
  keys?: MasterKeys
  /** Identifies the server and its stored state, as in confirm tokens. */
  audience: string
  /** The record of used states in the store. If it is absent, used states are remembered in this process only. */
  usedTokens?: Pick<UsedTokens, 'claim'>
  /** Returns milliseconds since the epoch. */
  now: () => number
}

const LIFETIME_MS = 15 * 60 * 1000
const LONGEST = 8192

/**
 * Creates the seal for states, which clients receive with a question and send back with the answer. A state can be
 * opened only once, unchanged, and for the same call of the same caller (D148).
 */
export function createRequestStates({ keys, audience, usedTokens, now }: RequestStatesOptions): RequestStates {
  const states = createSeal('requestState', keys ?? { hmacKey: randomBytes(32) })
  // The stored record could be reset, because it is not sealed. States used in this process are therefore also
  // remembered here.
  const usedHere = rememberHere(now)
  return {
    seal(state) {
      const whole = { ...state, nonce: randomBytes(16).toString('hex'), until: now() + LIFETIME_MS }
      return Buffer.from(states.seal(JSON.stringify(whole), [audience])).toString('base64url')
    },
    async open(sealed, facts) {
      if (sealed.length > LONGEST) return null
      const bytes = Buffer.from(sealed, 'base64url')
      // Only the canonical encoding is accepted, so that a second encoding of a state cannot pass as another state.
      if (bytes.toString('base64url') !== sealed) return null
      const opened = parseSealed<RequestState & Sealed>(states.open(bytes.toString('utf8'), [audience]))
      if (opened === null || opened.until <= now() || bindingOf(opened) !== bindingOf(facts)) return null
      const { nonce, until, ...state } = opened
      if (usedHere.has(nonce)) return null
      const isFirst =
        usedTokens === undefined || (await attempt(() => usedTokens.claim(`request-state:${nonce}`, until)))
      return isFirst && usedHere.claim(nonce) ? state : null
    },
  }
}

interface Sealed {
  nonce: string
  /** The time at which the state expires, in milliseconds since the epoch. */
  until: number
}

const bindingOf = ({ owner, method, name, paramsHash }: RequestFacts) =>
  JSON.stringify([owner?.iss, owner?.sub, method, name, paramsHash])

/**
 * Creates a record of used states in the memory of this process. This is enough for a single client, since states
 * expire within minutes.
 */
function rememberHere(now: () => number) {
  const used = new LRUCache<string, true>({ max: 10_000, ttl: LIFETIME_MS, ttlResolution: 0, perf: { now } })
  return {
    has: (nonce: string) => used.has(nonce),
    /** Returns true if the state is claimed for the first time. */
    claim(nonce: string): boolean {
      if (used.has(nonce)) return false
      used.set(nonce, true)
      return true
    },
  }
}
