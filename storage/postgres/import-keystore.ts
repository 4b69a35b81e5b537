import { isDeepStrictEqual } from 'node:util'
import { StartupError } from '../../schemas/config.js'
import type { Owner } from '../../schemas/caller.js'
import type { SealedCredentials } from '../../schemas/state.js'
import type { Database, Query } from './connect.js'
import { putRecord, recordOf, type RecordRow } from './tables.js'

export interface KeystoreContent {
  records: readonly { owner: Owner; record: SealedCredentials }[]
  /** The notes that belong to a keystore: the value of each, by name. */
  notes: ReadonlyMap<string, string>
}

/** The time limit of each statement of the import, in milliseconds. */
const LONGEST_MS = 60_000

/**
 * Imports a complete keystore into a database that has none, in a single transaction. If the database already has
 * exactly this keystore, nothing is changed: an earlier import was committed, but its confirmation was lost or a later
 * step failed.
 *
 * @param where describes the database in messages.
 * @throws {StartupError} (rejects) if the database has another keystore.
 */
export async function importKeystore(
  { inTransaction }: Database,
  { records, notes }: KeystoreContent,
  where: string,
): Promise<void> {
  await inTransaction(async (run) => {
    // The lock prevents servers from starting to use the keystore during the import.
    await run('LOCK TABLE svc_mcp.credentials, svc_mcp.notes IN EXCLUSIVE MODE')
    const there = await readKeystore(run, [...notes.keys()])
    if (there.records.length === 0 && !there.notes.has('kek')) {
      for (const { owner, record } of records) await putRecord(run, owner, record)
      for (const [name, value] of notes)
        await run(
          'INSERT INTO svc_mcp.notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
          [name, value],
        )
    } else if (!isDeepStrictEqual(there, { records, notes }))
      throw new StartupError({
        problem: `The database at ${where} already has a keystore`,
        remedy: 'Nothing was moved. Use a database that no server has used yet.',
      })
  }, LONGEST_MS)
}

async function readKeystore(run: Query, names: readonly string[]): Promise<KeystoreContent> {
  const { rows: records } = await run<Owner & RecordRow>('SELECT * FROM svc_mcp.credentials ORDER BY iss, sub')
  const { rows: notes } = await run<{ name: string; value: string }>(
    `SELECT name, value FROM svc_mcp.notes WHERE name = 'kek' OR name = ANY($1)`,
    [names],
  )
  return {
    records: records.map((row) => ({ owner: { iss: row.iss, sub: row.sub }, record: recordOf(row) })),
    notes: new Map(notes.map(({ name, value }) => [name, value])),
  }
}
