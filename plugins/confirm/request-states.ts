import { randomBytes } from 'node:crypto'
import type { RequestFacts, RequestState, RequestStates } from '../../schemas/approvals.js'
import type { UsedTokens } from '../../schemas/state.js'
import { attempt } from './attempt.js'
import { type Ended, endOnce, rememberEnded } from './remember-ended.js'
import { createSeal, type MasterKeys, parseSealed } from './seals.js'

export interface RequestStatesOptions {
  /**
   * The operator's keys, with which question states are sealed. If they are absent, a random key is used, and all
   * states become invalid when the process ends.
   */
  keys?: MasterKeys
  /** Identifies the server and its stored state, as in confirm tokens. */
  audience: string
  /** The store's record of used question states. If it is absent, only this process remembers used states. */
  usedTokens?: Pick<UsedTokens, 'claim'>
  /**
   * A memory of the approvals, confirm tokens and question states that ended in this process. If it is absent, a new
   * memory is created for these states alone.
   */
  endedHere?: Ended
  /** Returns milliseconds since the epoch. */
  now: () => number
}

const LIFETIME_MS = 15 * 60 * 1000
const LONGEST = 8192

/**
 * Creates the functions that seal and open the states of questions. A client receives a state with a question and sends
 * it back with the answer. A state can be opened only once, unchanged, and for the same call of the same caller (D148).
 */
export function createRequestStates(options: RequestStatesOptions): RequestStates {
  const { keys, audience, usedTokens, endedHere = rememberEnded(), now } = options
  const states = createSeal('requestState', keys ?? { hmacKey: randomBytes(32) })
  return {
    seal(state) {
      const whole = { ...state, nonce: randomBytes(16).toString('hex'), until: now() + LIFETIME_MS }
      return Buffer.from(states.seal(JSON.stringify(whole), [audience])).toString('base64url')
    },
    async open(sealed, facts) {
      if (sealed.length > LONGEST) return null
      const bytes = Buffer.from(sealed, 'base64url')
      // Only the canonical encoding is accepted, because the same state in another encoding would otherwise count as a
      // different, unused state.
      if (bytes.toString('base64url') !== sealed) return null
      const opened = parseSealed<RequestState & Sealed>(states.open(bytes.toString('utf8'), [audience]))
      if (opened === null || opened.until <= now() || bindingOf(opened) !== bindingOf(facts)) return null
      const { nonce, until, ...state } = opened
      const id = `request-state:${nonce}`
      const claim = async () => usedTokens === undefined || attempt(() => usedTokens.claim(id, until))
      return (await endOnce(endedHere, id, 'used', claim)) ? state : null
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
