import { createHash, randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { Admissions } from '../../schemas/state.js'
import { checkText } from '../check-text.js'
import { nameOfRevocation, readRevocation } from '../revocations.js'
import type { Database, Value } from './connect.js'
import type { Problems } from './note-problems.js'
import { READ_COLUMNS, recordOf, type RecordRow } from './tables.js'
import { takeTurns } from './take-turns.js'

/**
 * The time, in milliseconds after a replica's last heartbeat, for which the replica's places remain valid. Each running
 * request occupies one place.
 */
const LEASE = '45 seconds'

const MOST_REACHED = 10_000

interface Verdict extends RecordRow {
  revocation: string | null
  verdict: 'admitted' | 'rate_limited' | 'overloaded'
  retry_after: number
}

/**
 * The limits per caller that apply to all replicas together, and the maintenance that each replica must do regularly.
 */
export interface SharedAdmissions extends Admissions {
  /**
   * Records a heartbeat of this replica and deletes outdated rows: places of replicas without heartbeats, places that
   * this replica no longer holds, and old counts. Rejects with Error.
   */
  tend(): Promise<void>
  /** Releases all places of this replica. Rejects with Error. */
  leave(): Promise<void>
}

/**
 * Creates the limits per caller across all replicas (D139): a limit on requests per minute by the database's clock, and
 * a limit on simultaneous requests. Each running request occupies a place, which is a row that is valid as long as its
 * replica sends heartbeats. `noteAdmission` receives the outcome of each query that asks whether a request is admitted:
 * null if the database answered, otherwise the error.
 */
export function createAdmissions(
  { query }: Database,
  { noteAdmission }: Pick<Problems, 'noteAdmission'>,
): SharedAdmissions {
  const replica = randomUUID()
  /**
   * The ids of the places that running requests occupy. An id is added before the place is requested from the database.
   * A place of this replica in the database that is not in this set is a leftover.
   */
  const held = new Set<string>()

  const take = (caller: Buffer): string => {
    const id = randomUUID()
    held.add(id)
    query('INSERT INTO svc_mcp.places (id, caller, replica) VALUES ($1, $2, $3)', [id, caller, replica]).catch(() => {
      // If the row of a place cannot be stored, the request continues, and the count of running requests is one too
      // low.
    })
    return id
  }

  /**
   * For each caller, the ids of places that are being released. They must not count against the caller's next request.
   */
  const leaving = new Map<string, Set<string>>()

  const giveBack = (caller: Buffer, id: string): void => {
    held.delete(id)
    const key = caller.toString('base64')
    const others = leaving.get(key) ?? new Set()
    leaving.set(key, others.add(id))
    query(
      'DELETE FROM svc_mcp.places WHERE id IN (SELECT id FROM svc_mcp.places WHERE id = $1 FOR UPDATE SKIP LOCKED)',
      [id],
    )
      .catch(() => {
        // If the row cannot be deleted, or is locked, it is left for `tend` to remove.
      })
      .finally(() => {
        others.delete(id)
        if (others.size === 0) leaving.delete(key)
      })
  }

  /**
   * For each limit and caller, the time until which the caller has exhausted the limit, on this replica's monotonic
   * clock. Until then, the caller's requests are refused without a query.
   */
  const reached = new LRUCache<string, number>({ max: MOST_REACHED })

  function refuseReached(key: Buffer, most: number): void {
    if (most === 0) return
    const until = reached.get(key.toString('base64'))
    const left = until === undefined ? 0 : until - performance.now()
    if (left > 0) throw tooMany(most, Math.ceil(left / 1000))
  }

  function refuse(key: Buffer, most: number, seconds: number): never {
    reached.set(key.toString('base64'), performance.now() + seconds * 1000)
    throw tooMany(most, seconds)
  }

  const inTurn = takeTurns(
    () => new ToolError('overloaded', 'Other requests of yours are not admitted yet. Send fewer at a time.'),
  )

  async function ask(key: Buffer, { iss, sub }: Owner, more: () => readonly Value[]): Promise<Verdict> {
    const caller = JSON.stringify([iss, sub])
    return inTurn(caller, async () => {
      try {
        const { rows } = await query<Verdict>(
          `SELECT verdict, retry_after, ${READ_COLUMNS}, (SELECT left(value, 4096) FROM svc_mcp.notes WHERE name = $11) AS revocation
           FROM svc_mcp.admit_2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
          [key, ...more(), checkText(nameOfRevocation({ iss, sub }))],
        )
        const [found] = rows
        if (found === undefined) throw new Error('the state database did not say whether a request is admitted')
        noteAdmission(caller, null)
        return found
      } catch (error) {
        noteAdmission(caller, error as Error)
        throw error
      }
    })
  }

  return {
    async admit({ owner, perMinute, atATime, isCounted = true }) {
      const caller = keyOf('requests', owner)
      refuseReached(caller, perMinute)
      let id: string = randomUUID()
      const [iss, sub] = [checkText(owner.iss), checkText(owner.sub)]
      if (atATime > 0) held.add(id)
      try {
        const hits = isCounted ? 1 : 0
        const found = await ask(caller, owner, () => {
          const over = [...(leaving.get(caller.toString('base64')) ?? [])]
          return [hits, perMinute, id, over, atATime, replica, LEASE, iss, sub]
        })
        if (found.verdict === 'rate_limited') refuse(caller, perMinute, found.retry_after)
        if (found.verdict === 'overloaded')
          throw new ToolError('overloaded', 'You have reached the limit of requests in flight for one caller.')
        const holdPlace = (isHeld: boolean) => {
          if (isHeld) id = take(caller)
          else giveBack(caller, id)
        }
        // The statement always returns a row; its columns are null if the caller has no record.
        const record = found.version === null ? null : recordOf(found)
        const revocation = readRevocation(found.revocation)
        return { record, revocation, holdPlace: atATime > 0 ? holdPlace : () => {} }
      } catch (error) {
        // If the database admitted the request but its answer was lost, it may contain the place. The id is removed
        // from `held`, so that `tend` treats such a place as a leftover and deletes it.
        held.delete(id)
        throw error
      }
    },

    async count(limit, owner, perMinute, times) {
      if (perMinute === 0) return
      const none = '00000000-0000-0000-0000-000000000000'
      const key = keyOf(limit, owner)
      refuseReached(key, perMinute)
      const values: Value[] = [times, perMinute, none, [], 0, replica, LEASE, null, null]
      const { verdict, retry_after: seconds } = await ask(key, owner, () => values)
      if (verdict === 'rate_limited') refuse(key, perMinute, seconds)
    },

    async tend() {
      await query(
        `WITH mine AS (
           INSERT INTO svc_mcp.replicas (id, expires_at) VALUES ($1, clock_timestamp() + $2::interval)
           ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at),
         dead AS (
           DELETE FROM svc_mcp.replicas WHERE id IN (
             SELECT id FROM svc_mcp.replicas WHERE expires_at < clock_timestamp() AND id <> $1 FOR UPDATE SKIP LOCKED)),
         old AS (
           DELETE FROM svc_mcp.counts WHERE key IN (
             SELECT key FROM svc_mcp.counts WHERE started < clock_timestamp() - interval '5 minutes' LIMIT 10000
             FOR UPDATE SKIP LOCKED))
         DELETE FROM svc_mcp.places WHERE id IN (
           SELECT p.id FROM svc_mcp.places p WHERE p.replica <> $1 AND NOT EXISTS (
             SELECT 1 FROM svc_mcp.replicas r WHERE r.id = p.replica AND r.expires_at >= clock_timestamp())
           FOR UPDATE SKIP LOCKED)`,
        [replica, LEASE],
      )
      // Deletes this replica's leftovers. Places younger than 10 seconds are kept, because they may belong to requests
      // that were admitted in the meantime.
      await query(
        `DELETE FROM svc_mcp.places WHERE id IN (
           SELECT id FROM svc_mcp.places WHERE replica = $1 AND taken_at < clock_timestamp() - interval '10 seconds'
             AND id <> ALL($2::uuid[]) FOR UPDATE SKIP LOCKED)`,
        [replica, [...held]],
      )
    },

    async leave() {
      await query(
        'WITH me AS (DELETE FROM svc_mcp.replicas WHERE id = $1) DELETE FROM svc_mcp.places WHERE replica = $1',
        [replica],
      )
    },
  }
}

/**
 * Returns a key for a limit and its owner. It has a fixed length and reveals nothing about the owner to anyone who
 * reads the database.
 */
const keyOf = (limit: string, { iss, sub }: Owner): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([limit, iss, sub]))
    .digest()

const tooMany = (most: number, seconds: number) =>
  new ToolError('rate_limited', `More than ${most} requests in a minute: wait ${seconds} s.`, { retry_after: seconds })
