import { LRUCache } from 'lru-cache'
import { PceError } from '../../pce-client/index.js'
import { ACCESS_REVOKED, type AccessCheck, type Holder } from '../../schemas/access.js'
import type { Owner } from '../../schemas/caller.js'
import type { Revocation, Revocations } from '../../schemas/state.js'

/** Maximum difference in milliseconds between the clocks of the provider, the servers and the operator (D14). */
const SKEW_MS = 30_000
/** Maximum lifetime of a token in milliseconds. A token without a time of issue may have been issued that long ago. */
const LONGEST_LIFE_MS = 24 * 60 * 60 * 1000
/** Maximum number of revocations that a process remembers, so that they still apply while the store cannot be read. */
const MOST_SEEN = 10_000

/**
 * Creates the checks for revoked access. Each check reads the store. A revocation therefore applies, in every process,
 * to everything that begins after the operator's command has ended.
 *
 * @param now returns milliseconds since the epoch.
 */
export function createAccessCheck({
  revocations,
  now,
  log,
}: {
  revocations: Pick<Revocations, 'find' | 'findOnArrival'>
  now: () => number
  log: { error: (facts: object, message: string) => void }
}): AccessCheck {
  const seen = new LRUCache<string, Revocation>({ max: MOST_SEEN })

  function remember(owner: Owner, found: Revocation | null): Revocation | null {
    if (found !== null) seen.set(keyOf(owner), found)
    else if (seen.size > 0) seen.delete(keyOf(owner))
    return found
  }

  function lastSeen(owner: Owner, err: unknown): Revocation | null {
    log.error({ err }, 'revocations cannot be read: changes are refused, and known revocations remain in force')
    return seen.get(keyOf(owner)) ?? null
  }

  function find(owner: Owner, read: Revocations['find']): Revocation | null | Promise<Revocation | null> {
    try {
      const found = read(owner)
      if (!(found instanceof Promise)) return remember(owner, found)
      return found.then((read) => remember(owner, read)).catch((error: unknown) => lastSeen(owner, error))
    } catch (error) {
      return lastSeen(owner, error)
    }
  }

  const judge = (found: Revocation | null, { issuedAt }: Pick<Holder, 'issuedAt'>): boolean => {
    if (found === null) return false
    if (issuedAt === undefined) return now() < found.until + LONGEST_LIFE_MS
    return issuedAt * 1000 < found.until + SKEW_MS
  }

  const isRevokedSince = async (owner: Owner, at: number) =>
    judge(remember(owner, await revocations.find(owner)), { issuedAt: at / 1000 })

  const isRevokedBy =
    (read: Revocations['find']): AccessCheck['isRevoked'] =>
    (identity, known) => {
      const found = known === undefined ? find(identity, read) : remember(identity, known)
      return found instanceof Promise ? found.then((read) => judge(read, identity)) : judge(found, identity)
    }

  return {
    isRevoked: isRevokedBy((owner) => revocations.find(owner)),
    isRevokedOnArrival: isRevokedBy((owner) => revocations.findOnArrival(owner)),
    isRevokedSince,
    async requireWrite(identity) {
      let isOver: boolean
      try {
        isOver = judge(remember(identity, await revocations.find(identity)), identity)
      } catch (cause) {
        throw new PceError('write_refused', UNREADABLE, { cause, reason: 'STATE_UNREADABLE' })
      }
      if (isOver) throw new PceError('write_refused', ENDED, { reason: ACCESS_REVOKED })
    },
  }
}

const ENDED = 'Your access was revoked while this call was running, so it sends no further change to the PCE.'
const UNREADABLE =
  'The store of this server cannot be read, so it is not known whether your access was revoked, and no further change is sent.'

const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
