import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { ConfirmedCall } from '../../schemas/confirmations.js'

/**
 * What was shown, as it is stored: with a code that only this server can make (HMAC-SHA-256), over the call, its caller, the end of the
 * question and the state that it is in. So whoever can only write to that state can have nothing confirmed that was not shown (D141).
 */
interface ChallengeSeals {
  /** `expiresAt` in milliseconds since the epoch. */
  seal(call: ConfirmedCall, boundTo: string, expiresAt: number): string
  /** What was sealed for this call; null for anything else, and once it has expired. */
  open(call: ConfirmedCall, sealed: string): string | null
}

const SEALED = /^([0-9a-f]{64})\.(\d{1,16})\.(.+)$/s

/** @param audience names the server and its state, as confirm tokens have it. `now` in milliseconds since the epoch. */
export function createChallengeSeals(
  { hmacKey, previousHmacKey }: ConfirmConfig,
  audience: string,
  now: () => number,
): ChallengeSeals {
  const keys = [hmacKey, ...(previousHmacKey === undefined ? [] : [previousHmacKey])].map((key) =>
    Buffer.from(hkdfSync('sha256', key, '', 'svc-mcp challenge', 32)),
  )
  const codeOf = (key: Buffer, { owner, tool, paramsHash, pce }: ConfirmedCall, boundTo: string, expiresAt: number) =>
    createHmac('sha256', key)
      .update(JSON.stringify([audience, owner.iss, owner.sub, tool, paramsHash, pce ?? null, boundTo, expiresAt]))
      .digest()
  return {
    seal: (call, boundTo, expiresAt) =>
      `${codeOf(keys[0]!, call, boundTo, expiresAt).toString('hex')}.${expiresAt}.${boundTo}`,
    open(call, sealed) {
      const [, code, end, boundTo] = SEALED.exec(sealed) ?? []
      if (code === undefined || boundTo === undefined) return null
      const expiresAt = Number(end)
      const given = Buffer.from(code, 'hex')
      const isOurs = keys.some((key) => timingSafeEqual(codeOf(key, call, boundTo, expiresAt), given))
      return isOurs && expiresAt > now() ? boundTo : null
    },
  }
}
