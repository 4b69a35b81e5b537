import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { LRUCache } from 'lru-cache'
import type { Owner } from '../../schemas/caller.js'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { Confirmations, ConfirmedCall, SignedToken } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { ChallengeKey, Challenges, UsedTokens } from '../../schemas/state.js'
import { attempt } from './attempt.js'
import { paramsHash } from './params-hash.js'
import { createSeal, createTokenSeal } from './seals.js'

export interface ConfirmationsOptions {
  config: ConfirmConfig
  /** Which server the tokens are for (MCP_PUBLIC_URL): two that happen to share a key take none of each other's. */
  audience: string
  usedTokens: UsedTokens
  challenges: Challenges
  /** Milliseconds since the epoch. */
  now: () => number
  /** 128 random bits in hex. */
  randomId?: () => string
}

/**
 * Confirm tokens (S6, S15, D19, D20, D21). A token costs no storage until it is used; then its id is kept, which does not say what
 * it was used for.
 */
export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { config, audience, usedTokens, challenges, now } = options
  const { randomId = () => randomBytes(16).toString('hex') } = options
  const seal = createTokenSeal(config)
  const shown = createSeal('challenge', config)
  /** What was shown is signed together with the call, its caller, the end of the question and the state that it is in (D141). */
  const factsOf =
    ({ owner, tool, paramsHash: hash, pce }: ConfirmedCall) =>
    (text: string) => {
      const { boundTo, expiresAt } = readShown(text)
      return [audience, owner.iss, owner.sub, tool, hash, pce ?? null, boundTo, expiresAt]
    }

  /** What was shown for the call last, where it was this server that wrote it down and it is still in time. */
  async function findShown(call: ConfirmedCall): Promise<string | null> {
    const kept = await attempt(() => challenges.get(keyOf(call)))
    const text = kept === null ? null : shown.open(kept, factsOf(call))
    if (text === null) return null
    const { boundTo, expiresAt } = readShown(text)
    return expiresAt > now() ? boundTo : null
  }

  /** Tokens that this process has seen used: a repetition costs no look at the PCE. */
  const spentHere = new LRUCache<string, true>({ max: MOST_REMEMBERED })
  const isUsed = ({ jti }: SignedToken) => attempt(() => usedTokens.isUsed(jti))
  const isExpired = ({ expiresAt }: SignedToken) => now() >= expiresAt

  return {
    hash: paramsHash,

    describe({ caller: { iss, sub }, pce }, tool, hash) {
      if (iss === null || sub === null) {
        throw new ToolError('server_misconfigured', 'Only an authenticated caller can confirm a call.')
      }
      const where = pce === null ? {} : { pce: `${pce.origin} org ${pce.orgId}` }
      return { owner: { iss, sub }, tool, paramsHash: hash, ...where }
    },

    async ask(call, boundTo) {
      const expiresAt = now() + config.ttlSeconds * 1000
      if (boundTo === null) return { expiresAt }
      const sealed = shown.seal(`${expiresAt}.${boundTo}`, factsOf(call))
      await attempt(() => challenges.put(keyOf(call), sealed, expiresAt))
      return { expiresAt, challenge: challengeOf(call, boundTo) }
    },

    async mint(call, challenge) {
      const set = await findShown(call)
      if (challenge !== undefined && (set === null || !isSame(challenge, challengeOf(call, set)))) throw outdated(call)
      const jti = randomId()
      const iat = Math.floor(now() / 1000)
      const token = seal.sign({
        v: VERSION,
        jti,
        iss: call.owner.iss,
        sub: call.owner.sub,
        aud: audience,
        tool: call.tool,
        params_hash: call.paramsHash,
        ...(call.pce !== undefined && { pce: call.pce }),
        iat,
        exp: iat + config.ttlSeconds,
        ...(set !== null && { set }),
      } satisfies Claims)
      return { token, jti, expiresIn: config.ttlSeconds }
    },

    read(token, { owner, tool, paramsHash: hash, pce }) {
      if (token === undefined || token === null) return { state: 'missing' }
      const claims = typeof token === 'string' && token.length <= LONGEST ? seal.verify(token) : null
      if (!Value.Check(Claims, claims)) return { state: 'malformed' }
      const { jti, exp, set } = claims
      const isForThis =
        claims.aud === audience &&
        claims.iss === owner.iss &&
        claims.sub === owner.sub &&
        claims.tool === tool &&
        claims.params_hash === hash &&
        // A caller who has registered another PCE since was shown what would happen on the previous one.
        claims.pce === pce
      if (!isForThis) return { state: 'mismatch', jti }
      return { state: 'signed', token: { jti, expiresAt: exp * 1000, ...(set !== undefined && { boundTo: set }) } }
    },

    async spend(token, findBinding, signal) {
      // A used token stays used, even if it has expired or the policy has changed since, not least by the call it was used for. The store
      // is asked first only where a repetition can be told by it alone; otherwise by the claim.
      if (spentHere.has(token.jti)) return 'replayed'
      if (isExpired(token)) return (await isUsed(token)) ? 'replayed' : 'expired'
      if (token.boundTo === undefined) return (await isUsed(token)) ? 'replayed' : 'stale'
      let isStale: boolean
      try {
        isStale = (await findBinding()) !== token.boundTo
      } catch (error) {
        // Another call may have used it in the meantime, and made what could not be found.
        if (await isUsed(token)) return 'replayed'
        throw error
      }
      // Time is judged once, above: to look up a large plan again takes longer than a token lives (D76).
      if (isStale) return (await isUsed(token)) ? 'replayed' : 'stale'
      // A client that is gone will not learn the outcome, and must be able to use the token again.
      signal?.throwIfAborted()
      const isFirst = await attempt(() => usedTokens.claim(token.jti, token.expiresAt))
      spentHere.set(token.jti, true)
      return isFirst ? 'spent' : 'replayed'
    },
  }
}

const VERSION = 1
/** Issuers and subjects are bounded, so a longer text is not one of our tokens. */
const LONGEST = 8192
const MOST_REMEMBERED = 10_000

const Claims = Type.Object(
  {
    v: Type.Literal(VERSION),
    jti: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    /** Issuer and subject of the caller's access token. */
    iss: Type.String({ minLength: 1 }),
    sub: Type.String({ minLength: 1 }),
    aud: Type.String({ minLength: 1 }),
    tool: Type.String({ minLength: 1 }),
    params_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** The PCE that the call was shown for. */
    pce: Type.Optional(Type.String({ minLength: 1 })),
    /** Whole seconds since the epoch. Time is judged when the token is spent, so that an expired token can still be told from a forged one. */
    iat: Type.Integer(),
    exp: Type.Integer(),
    /** The digest of what was shown, where something was. */
    set: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)
type Claims = Static<typeof Claims>

/** What was shown, as it is stored: its end in milliseconds since the epoch, a dot, and the digest. */
function readShown(text: string): { boundTo: string; expiresAt: number } {
  const dot = text.indexOf('.')
  return { expiresAt: Number(text.slice(0, dot)), boundTo: text.slice(dot + 1) }
}

/** What the challenges of one caller have in common. */
export const challengeOwner = ({ iss, sub }: Owner): string => digest([iss, sub])

/** Of fixed length and unique to the call, whatever a `sub` contains. */
export const keyOf = ({ owner, tool, paramsHash: hash, pce }: ConfirmedCall): ChallengeKey => ({
  owner: challengeOwner(owner),
  call: digest([owner.iss, owner.sub, tool, hash, pce ?? null]),
})

/** Reveals nothing about the set to those who do not know it. */
const challengeOf = (call: ConfirmedCall, set: string) => digest([keyOf(call).call, set])

const digest = (facts: readonly unknown[]) => createHash('sha256').update(JSON.stringify(facts)).digest('hex')

const isSame = (given: string, expected: string) => {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const outdated = ({ paramsHash: hash }: ConfirmedCall) =>
  new ToolError(
    'confirm_required',
    'The challenge does not match what was last shown for this call, or that was shown too long ago.',
    { reason: 'stale', params_hash: hash },
    { hint: 'Call again without a token, show the new summary, and POST the confirm.body of that answer.' },
  )
