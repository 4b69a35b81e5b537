import { createTokens } from '../../plugins/confirm/tokens.js'
import type { ConfirmConfig } from '../../schemas/config.js'
import type { Challenges, UsedTokens } from '../../schemas/state.js'

export interface MemoryState {
  usedTokens: UsedTokens
  challenges: Challenges
  /** Which method fails from now on, as a full disk would make it. */
  fail: 'claim' | 'isUsed' | 'put' | 'get' | null
}

/** The ports of the state file over maps, for what happens inside one process. */
export function memoryState(now: () => number): MemoryState {
  const used = new Set<string>()
  const asked = new Map<string, { boundTo: string; expiresAt: number }>()
  const attempt = async <T>(method: MemoryState['fail'], work: () => T): Promise<T> => {
    await Promise.resolve()
    if (state.fail === method) throw new Error('ENOSPC')
    return work()
  }
  const state: MemoryState = {
    fail: null,
    usedTokens: {
      claim: (id) => attempt('claim', () => !used.has(id) && used.add(id).has(id)),
      isUsed: (id) => attempt('isUsed', () => used.has(id)),
    },
    challenges: {
      put: ({ owner, call }, boundTo, expiresAt) =>
        attempt('put', () => void asked.set(`${owner}:${call}`, { boundTo, expiresAt })),
      get: ({ owner, call }) =>
        attempt('get', () => {
          const found = asked.get(`${owner}:${call}`)
          return found !== undefined && found.expiresAt > now() ? found.boundTo : null
        }),
      removeAll: () => Promise.reject(new Error('not kept in memory')),
    },
  }
  return state
}

export const PUBLIC_URL = 'https://mcp.example.test'

export const confirmationsOf = (
  { usedTokens, challenges }: Pick<MemoryState, 'usedTokens' | 'challenges'>,
  clock: { now: number },
  config: Partial<ConfirmConfig> = {},
  audience = PUBLIC_URL,
) =>
  createTokens({
    config: { hmacKey: Buffer.alloc(32, 7), ttlSeconds: 120, ...config },
    audience,
    usedTokens,
    challenges,
    now: () => clock.now,
  })
