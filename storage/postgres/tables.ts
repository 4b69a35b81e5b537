import type { Owner } from '../../schemas/caller.js'
import type { Challenges, CredentialRecords, Notes, SealedCredentials, UsedTokens } from '../../schemas/state.js'
import { bounded } from '../bound-value.js'
import { checkText, endOf } from '../check-text.js'
import type { Database, Query } from './connect.js'

export interface RecordRow {
  version: string
  kek_id: string
  wrapped_key: Buffer
  sealed: Buffer
}

const COLUMNS = 'version, kek_id, wrapped_key, sealed'
/** The SQL that reads the columns of a keystore record. */
export const READ_COLUMNS = COLUMNS.split(', ')
  .map((column) => bounded(column))
  .join(', ')

/** Creates an accessor for the keystore's records in the database (see schemas/state.ts). */
export function credentialRecords({ query, inTransaction }: Database): CredentialRecords {
  return {
    async get(owner) {
      const found = `SELECT ${READ_COLUMNS} FROM svc_mcp.credentials WHERE iss = $1 AND sub = $2`
      const { rows } = await query<RecordRow>(found, keyOf(owner))
      return rows[0] === undefined ? null : recordOf(rows[0])
    },
    async put(owner, record, only) {
      if (only === undefined) return (await putRecord(query, owner, record)).count === 1
      return inTransaction(async (run) => {
        // If another transaction writes one of the notes in `only.notes`, it must wait until this transaction is
        // committed. This also holds if the note does not exist yet, so that there is no row that could be locked.
        await run(
          `SELECT pg_advisory_xact_lock_shared(hashtextextended(n, 0)) FROM unnest($1::text[]) AS n ORDER BY n`,
          [only.notes],
        )
        const { rows } = await run<NoteRow>(
          `SELECT name, ${bounded('value')} FROM svc_mcp.notes WHERE name = ANY($1)`,
          [only.notes],
        )
        const values = new Map(rows.map(({ name, value }) => [name, value]))
        if (!only.isMet(only.notes.map((name) => values.get(name) ?? null))) return false
        await putRecord(run, owner, record)
        return true
      })
    },
    async replace(owner, wrappedKey, { version, kekId, wrappedKey: newKey, sealed }) {
      const { count } = await query(
        `UPDATE svc_mcp.credentials SET version = $4, kek_id = $5, wrapped_key = $6, sealed = $7
         WHERE iss = $1 AND sub = $2 AND wrapped_key = $3`,
        [...keyOf(owner), bytes(wrappedKey), version, kekId, bytes(newKey), bytes(sealed)],
      )
      return count === 1
    },
    async remove(owner) {
      return (await query('DELETE FROM svc_mcp.credentials WHERE iss = $1 AND sub = $2', keyOf(owner))).count > 0
    },
    async page(after, limit) {
      const where = after === null ? '' : 'WHERE (iss, sub) > ($2, $3)'
      const { rows } = await query<RecordRow & Owner>(
        `SELECT iss, sub, ${READ_COLUMNS} FROM svc_mcp.credentials ${where} ORDER BY iss, sub LIMIT $1`,
        after === null ? [limit] : [limit, ...keyOf(after)],
      )
      return rows.map((row) => ({ owner: { iss: row.iss, sub: row.sub }, record: recordOf(row) }))
    },
  }
}

/** Stores a record, which replaces an earlier record of its owner. */
export const putRecord = (run: Query, owner: Owner, { version, kekId, wrappedKey, sealed }: SealedCredentials) =>
  run(
    `INSERT INTO svc_mcp.credentials (iss, sub, ${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (iss, sub) DO UPDATE SET version = excluded.version, kek_id = excluded.kek_id,
       wrapped_key = excluded.wrapped_key, sealed = excluded.sealed`,
    [...keyOf(owner), version, kekId, bytes(wrappedKey), bytes(sealed)],
  )

const keyOf = ({ iss, sub }: Owner): [string, string] => [checkText(iss), checkText(sub)]
const bytes = (value: Uint8Array): Buffer => Buffer.from(value.buffer, value.byteOffset, value.byteLength)

/** Converts a database row to a keystore record. */
export const recordOf = ({
  version,
  kek_id: kekId,
  wrapped_key: wrappedKey,
  sealed,
}: RecordRow): SealedCredentials => ({
  version,
  kekId,
  wrappedKey: new Uint8Array(wrappedKey),
  sealed: new Uint8Array(sealed),
})

const FORGOTTEN = 'used_tokens_forgotten_until'
/** Returns the SQL that reads the value of the note as a time, or as NULL if the value is not a time. */
const timeOf = (value: string) => `CASE WHEN ${value} ~ '^[0-9]{1,16}$' THEN ${value}::bigint END`

/** The time for which the id of a used token is kept after the token has expired, by the database's clock. */
const KEPT = `interval '24 hours'`
/** Returns the SQL of a time, by the database's clock, in milliseconds since the epoch. */
const at = (time: string) => `(extract(epoch FROM clock_timestamp() ${time}) * 1000)::bigint`
/** The SQL of the time 24 hours ago. Ids of tokens that expired later must not be deleted yet. */
const A_DAY_AGO = at(`- ${KEPT}`)
/**
 * The SQL of the time one hour from now. The note with the latest expiry time of deleted token ids can contain a later
 * time only if somebody else has written it, or if the clocks of the database and of the servers were more than 25
 * hours ahead. A later time would make servers refuse every confirmed call until then. It is therefore read as 24 hours
 * ago. This is safe unless the clocks were ahead, because no id of a token that expired within the last 24 hours has
 * been deleted (D240).
 */
const NEVER = at(`+ interval '1 hour'`)

/**
 * Creates an accessor for the used confirm tokens in the database (see schemas/state.ts; D42). Each used token is
 * recorded in two tables, so that deleting one row does not make it valid again (D240). `forgetOld` deletes the ids of
 * tokens that expired long ago. A token whose expiry time is not later than that of a deleted id counts as used,
 * whatever the clock shows by then.
 */
export function usedTokens({ query }: Database): UsedTokens {
  return {
    async claim(id, expiresAt) {
      if (!Number.isSafeInteger(expiresAt)) throw new RangeError('expiresAt must be whole milliseconds')
      const { rows } = await query<{ is_first: boolean }>(
        `SELECT svc_mcp.claim_token_1($1, $2, (
           SELECT CASE WHEN ${timeOf('value')} > ${NEVER} THEN ${A_DAY_AGO} ELSE ${timeOf('value')} END
           FROM svc_mcp.notes WHERE name = '${FORGOTTEN}')) AS is_first`,
        [checkText(id), expiresAt],
      )
      return rows[0]?.is_first === true
    },
    async isUsed(id) {
      const used = 'SELECT 1 FROM svc_mcp.used_tokens WHERE id = $1 UNION SELECT 1 FROM svc_mcp.spent WHERE id = $1'
      return (await query(used, [checkText(id)])).rows.length === 1
    },
  }
}

/** Maximum number of rows that one statement deletes. It is small, so that no statement is slow. */
const CLEARED = 1000
/** Maximum number of open confirmation questions in the database. */
const MOST_CHALLENGES = 10_000

/** Deletes the ids of used tokens that expired long ago, and the confirmation questions beyond the limit. */
export async function forgetOld({ query }: Database): Promise<void> {
  await query(
    `WITH old AS (
       DELETE FROM svc_mcp.used_tokens WHERE id IN (
         SELECT id FROM svc_mcp.used_tokens
         WHERE expires_at <= ${A_DAY_AGO} ORDER BY expires_at LIMIT ${CLEARED})
       RETURNING expires_at)
     INSERT INTO svc_mcp.notes AS n (name, value)
     SELECT '${FORGOTTEN}', max(expires_at)::text FROM old HAVING count(*) > 0
     ON CONFLICT (name) DO UPDATE SET value = greatest(${timeOf('n.value')}, excluded.value::bigint)::text`,
  )
  await query(
    `DELETE FROM svc_mcp.spent WHERE id IN (
       SELECT id FROM svc_mcp.spent WHERE expires_at <= ${A_DAY_AGO} ORDER BY expires_at LIMIT ${CLEARED}
       FOR UPDATE SKIP LOCKED)`,
  )
  await query(
    `DELETE FROM svc_mcp.challenges WHERE (owner, call) IN (
       SELECT owner, call FROM svc_mcp.challenges ORDER BY expires_at DESC OFFSET ${MOST_CHALLENGES} LIMIT ${CLEARED})`,
  )
}

/**
 * If the note with the latest expiry time of deleted token ids contains a time that no server with a right clock
 * writes, resets it to 24 hours ago. Resolves with true if it did.
 */
export async function mendForgotten({ query }: Database): Promise<boolean> {
  const { count } = await query(
    `UPDATE svc_mcp.notes SET value = ${A_DAY_AGO}::text WHERE name IN (
       SELECT name FROM svc_mcp.notes WHERE name = '${FORGOTTEN}' AND ${timeOf('value')} > ${NEVER} FOR UPDATE SKIP LOCKED)`,
  )
  return count > 0
}

/** Maximum number of open confirmation questions of one owner. Nobody can read more before they expire. */
const MOST_CHALLENGES_PER_OWNER = 100

/**
 * Creates an accessor for the confirmation questions in the database (see schemas/state.ts). `now` returns milliseconds
 * since the epoch.
 */
export function challenges({ query }: Database, now: () => number): Challenges {
  return {
    async put({ owner, call }, boundTo, expiresAt) {
      await query('SELECT svc_mcp.put_challenge_1($1, $2, $3, $4, $5, $6)', [
        checkText(owner),
        checkText(call),
        checkText(boundTo),
        expiresAt,
        now(),
        MOST_CHALLENGES_PER_OWNER,
      ])
    },
    async get({ owner, call }) {
      const { rows } = await query<{ bound_to: string }>(
        `SELECT ${bounded('bound_to')} FROM svc_mcp.challenges WHERE owner = $1 AND call = $2 AND expires_at > $3`,
        [checkText(owner), checkText(call), now()],
      )
      return rows[0]?.bound_to ?? null
    },
    async removeAll(owner) {
      return (await query('DELETE FROM svc_mcp.challenges WHERE owner = $1', [checkText(owner)])).count
    },
  }
}

interface NoteRow {
  name: string
  value: string
}

/** Creates an accessor for the notes in the database, which are small facts about the state (see schemas/state.ts). */
export function notes({ query, inTransaction }: Database): Notes {
  const read = async (run: Query, name: string) => {
    const { rows } = await run<NoteRow>(`SELECT name, ${bounded('value')} FROM svc_mcp.notes WHERE name = $1`, [
      checkText(name),
    ])
    return rows[0]?.value ?? null
  }
  /**
   * Changes a note. Waits first until all transactions that store a registration and have read this note are committed.
   */
  const changing = <T>(name: string, change: (run: Query) => Promise<T>): Promise<T> =>
    inTransaction(async (run) => {
      await run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [checkText(name)])
      return change(run)
    })
  return {
    get: (name) => read(query, name),
    list: async (prefix, after, limit) => {
      const named = `SELECT name, ${bounded('value')} FROM svc_mcp.notes WHERE name > $1 AND name < $2 ORDER BY name LIMIT $3`
      const values = [checkText(after > prefix ? after : prefix), endOf(prefix), limit]
      return (await query<NoteRow>(named, values)).rows
    },
    set: (name, value) =>
      changing(name, async (run) => {
        await run(
          `INSERT INTO svc_mcp.notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
          [name, checkText(value)],
        )
      }),
    remove: (name) =>
      changing(name, async (run) => (await run('DELETE FROM svc_mcp.notes WHERE name = $1', [name])).count > 0),
    // An existing note is only read, so that a lock on the row does not prevent a program from starting.
    setOnce: async (name, value) =>
      (await read(query, name)) ??
      changing(name, async (run) => {
        await run('INSERT INTO svc_mcp.notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING', [
          name,
          checkText(value),
        ])
        return (await read(run, name))!
      }),
  }
}
