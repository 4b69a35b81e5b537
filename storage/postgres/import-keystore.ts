import { isDeepStrictEqual } from 'node:util'
import { StartupError } from '../../schemas/config.js'
import type { Owner } from '../../schemas/caller.js'
import type { SealedCredentials } from '../../schemas/state.js'
import type { Database, Query } from './connect.js'
import { putRecord, recordOf, type RecordRow } from './tables.js'

export interface KeystoreContent {
  records: readonly { owner: Owner; record: SealedCredentials }[]
  /** By name. */
  notes: ReadonlyMap<string, string>
}

/** For many records, one after the other: what each statement may take is short all the same. */
const LONGEST_MS = 60_000

/**
 * Puts a whole keystore into a database that has none, in one transaction: all of it or nothing. A database that has this very keystore is
 * left as it is: its commit was not heard of, or what was to come after it failed.
 *
 * @param where of the database, for messages.
 * @throws {StartupError} (rejects) where there is another keystore.
 */
export async function importKeystore(
  { inTransaction }: Database,
  { records, notes }: KeystoreContent,
  where: string,
): Promise<void> {
  await inTransaction(async (run) => {
    // No server can begin to use it meanwhile.
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
        problem: `The database at ${where} has a keystore already`,
        remedy: 'Nothing was moved: name a database that no server has used yet.',
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
