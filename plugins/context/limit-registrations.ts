import { LRUCache } from 'lru-cache'
import type { Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'

/** Each registration makes this server connect to an address of the caller's choice (D48). */
const MOST = 5
const WINDOW_MS = 60_000
const MOST_OWNERS = 10_000

/**
 * Lets an owner register five times in any minute. The returned function counts one and throws ToolError
 * `rate_limited {retry_after: seconds}` for one too many.
 *
 * @param now milliseconds.
 */
export function limitRegistrations(now: () => number): (owner: Owner) => void {
  const starts = new LRUCache<string, readonly number[]>({ max: MOST_OWNERS })
  return ({ iss, sub }) => {
    const key = JSON.stringify([iss, sub])
    const at = now()
    const recent = (starts.get(key) ?? []).filter((start) => start > at - WINDOW_MS && start <= at)
    const [oldest] = recent
    if (oldest !== undefined && recent.length >= MOST) {
      const seconds = Math.ceil((oldest + WINDOW_MS - at) / 1000)
      throw new ToolError(
        'rate_limited',
        `PCE credentials can be registered ${MOST} times a minute.`,
        { retry_after: seconds },
        { hint: `Try again in ${seconds} s.` },
      )
    }
    starts.set(key, [...recent, at])
  }
}
