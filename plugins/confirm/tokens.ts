import { randomBytes, timingSafeEqual } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Owner } from '../../schemas/caller.js'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import type { Challenges, UsedTokens } from '../../schemas/state.js'
import { attempt } from './attempt.js'
import { digest, keyOf } from './confirmed-call.js'
import { redeem, type Redemption, type Yes } from './life.js'
import { type Ended, endOnce, rememberEnded } from './remember-ended.js'
import { createSeal } from './seals.js'
import { createTokenSeal } from './token-seal.js'

/** A confirm token that this server signed for this call and this caller. The token may be expired or already used. */
export interface SignedToken {
  /** The id of the token, which does not reveal the token. */
  jti: string
  /** The time at which the token expires, in milliseconds since the epoch. */
  expiresAt: number
  /** The person to whom the token was issued, and the time, in milliseconds since the epoch. */
  issued?: { to: Owner; at: number }
  /** The digest of what was shown to the person who confirmed the call; absent if nothing was shown. */
  boundTo?: string
}

/** The result of reading a confirm token, before the store is consulted. */
type TokenReading =
  { state: 'missing' | 'malformed' } | { state: 'mismatch'; jti: string } | { state: 'signed'; token: SignedToken }

/**
 * The functions for a server's confirm tokens. The gate that requires tokens uses them, and so does the route that
 * issues tokens.
 */
export type Tokens = ReturnType<typeof createTokens>

export interface TokensOptions {
  config: ConfirmConfig
  /**
   * The server for which the tokens are valid (MCP_PUBLIC_URL). Two servers that share a key do not accept each other's
   * tokens.
   */
  audience: string
  usedTokens: UsedTokens
  challenges: Challenges
  /**
   * A memory of the approvals, confirm tokens and question states that ended in this process. If it is absent, a new
   * memory is created for these tokens alone.
   */
  endedHere?: Ended
  /** Returns true if the access of the owner was revoked after the given time (`AccessCheck.isRevokedSince`). */
  isRevokedSince?: (owner: Owner, at: number) => Promise<boolean>
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/**
 * Creates the functions that issue, read and redeem the confirm tokens of a server (S6, S15, D19, D20, D21). Nothing is
 * stored about a token until it is used. Then its id is stored, which does not reveal what the token was used for.
 */
export function createTokens(options: TokensOptions) {
  const { config, audience, usedTokens, challenges, endedHere = rememberEnded(), isRevokedSince, now } = options
  const seal = createTokenSeal(config)
  const challengeSeal = createSeal('challenge', config, (text) => {
    const { boundTo, expiresAt } = readShown(text)
    return [boundTo, expiresAt]
  })
  /**
   * Returns the facts that are signed together with the digest of what was shown: the server's state, the caller and
   * the call (D141).
   */
  const aboutOf = ({ owner, tool, paramsHash: hash, pce }: ConfirmedCall) => [
    audience,
    owner.iss,
    owner.sub,
    tool,
    hash,
    pce ?? null,
  ]

  return {
    /**
     * Stores the digest of what was shown to the caller, and returns a challenge that identifies it without revealing
     * it. A token issued for the call before this question expires will contain the digest. The number of open
     * questions per caller is limited; beyond the limit, a new question replaces the one that expires first. Rejects
     * with ToolError `confirm_unavailable`.
     */
    async ask(call: ConfirmedCall, boundTo: string): Promise<{ expiresAt: number; challenge: string }> {
      const expiresAt = now() + config.ttlSeconds * 1000
      const sealed = challengeSeal.seal(`${expiresAt}.${boundTo}`, aboutOf(call))
      await attempt(() => challenges.put(keyOf(call), sealed, expiresAt))
      return { expiresAt, challenge: challengeOf(call, boundTo) }
    },

    /**
     * Issues a token for what was last shown about the call (D21). Rejects with ToolError `confirm_required {reason:
     * stale, params_hash}` if `challenge` is given but does not match what was last shown or that question has expired,
     * and with `confirm_unavailable` if the store does not respond.
     */
    async mint(call: ConfirmedCall, challenge?: string) {
      const kept = await attempt(() => challenges.get(keyOf(call)))
      const text = kept === null ? null : challengeSeal.open(kept, aboutOf(call))
      const shown = text === null ? null : readShown(text)
      const set = shown !== null && shown.expiresAt > now() ? shown.boundTo : null
      if (challenge !== undefined && (set === null || !isSame(challenge, challengeOf(call, set)))) throw outdated(call)
      const jti = randomBytes(16).toString('hex')
      const iat = Math.floor(now() / 1000)
      const token = seal.sign({
        v: VERSION,
        jti,
        iss: call.owner.iss,
        sub: call.owner.sub,
        aud: audience,
        tool: call.tool,
        params_hash: call.paramsHash,
        pce: call.pce,
        iat,
        exp: iat + config.ttlSeconds,
        set: set ?? undefined,
      } satisfies Claims)
      return { token, jti, expiresIn: config.ttlSeconds }
    },

    /** Reads a confirm token as the client sent it, which can be any string. Never throws. */
    read(token: unknown, { owner, tool, paramsHash: hash, pce }: ConfirmedCall): TokenReading {
      if (token === undefined || token === null) return { state: 'missing' }
      const claims = typeof token === 'string' && token.length <= LONGEST ? seal.verify(token) : null
      if (!Value.Check(Claims, claims)) return { state: 'malformed' }
      const { jti, iat, exp, set } = claims
      const isForThis =
        claims.aud === audience &&
        claims.iss === owner.iss &&
        claims.sub === owner.sub &&
        claims.tool === tool &&
        claims.params_hash === hash &&
        // A token is valid only for the PCE on which the call was previewed. The caller may have registered another PCE
        // since.
        claims.pce === pce
      if (!isForThis) return { state: 'mismatch', jti }
      const issued = isRevokedSince && { issued: { to: owner, at: iat * 1000 } }
      const shown = set !== undefined && { boundTo: set }
      return { state: 'signed', token: { jti, expiresAt: exp * 1000, ...issued, ...shown } }
    },

    /**
     * Redeems the token (see `redeem` in life.ts). A token from before its owner's access was revoked is `expired` even if
     * the owner has access again. A token without a digest is `stale`, because nobody was shown what
     * the call does (D75). Rejects with ToolError `confirm_unavailable` if the store does not respond.
     */
    async spend(
      { jti, expiresAt, issued, boundTo }: SignedToken,
      findBinding: () => Promise<string>,
      signal?: AbortSignal,
    ): Promise<Redemption> {
      // If this process remembers that the token was used, no request to the PCE is needed to find that out.
      if (endedHere.has(jti)) return 'replayed'
      const isUsed = () => attempt(() => usedTokens.isUsed(jti))
      const isRevoked =
        issued !== undefined && (await attempt(async () => isRevokedSince?.(issued.to, issued.at))) === true
      const isOver = now() >= expiresAt || isRevoked
      const yes: Yes = {
        boundTo,
        lapsed: isOver ? 'expired' : boundTo === undefined ? 'stale' : null,
        isUsed,
        lapse: async (why) => ((await isUsed()) ? 'replayed' : why),
        claim: () => endOnce(endedHere, jti, 'used', () => attempt(() => usedTokens.claim(jti, expiresAt))),
      }
      return redeem(yes, findBinding, signal)
    },
  }
}

const VERSION = 1
/**
 * Maximum length of a confirm token, in characters. Issuers and subjects have a limited length, so a longer string
 * cannot be a token of this server.
 */
const LONGEST = 8192

const Claims = Type.Object(
  {
    v: Type.Literal(VERSION),
    jti: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    /** The issuer and subject of the caller's access token. */
    iss: Type.String({ minLength: 1 }),
    sub: Type.String({ minLength: 1 }),
    aud: Type.String({ minLength: 1 }),
    tool: Type.String({ minLength: 1 }),
    params_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** The PCE for which the call was previewed; absent if the tool uses no PCE. */
    pce: Type.Optional(Type.String({ minLength: 1 })),
    /**
     * The times at which the token was issued (`iat`) and expires (`exp`), in whole seconds since the epoch. The seal
     * does not check expiry, so that an expired token can be distinguished from a forged one.
     */
    iat: Type.Integer(),
    exp: Type.Integer(),
    /** The digest of what was shown to the person; absent if nothing was shown. */
    set: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)
type Claims = Static<typeof Claims>

/**
 * Parses the stored record of what was shown. It consists of the time at which the question expires, in milliseconds
 * since the epoch, a dot, and the digest.
 */
function readShown(text: string): { boundTo: string; expiresAt: number } {
  const dot = text.indexOf('.')
  return { expiresAt: Number(text.slice(0, dot)), boundTo: text.slice(dot + 1) }
}

/**
 * Computes a challenge for the digest `set`. The challenge does not reveal the digest to anyone who does not know it.
 */
const challengeOf = (call: ConfirmedCall, set: string) => digest([keyOf(call).call, set])

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
