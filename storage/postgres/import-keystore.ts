import { StartupError } from '../../schemas/config.js'
import type { Owner } from '../../schemas/caller.js'
import type { SealedCredentials } from '../../schemas/state.js'
import type { Database } from './connect.js'
import { putRecord } from './tables.js'

export interface KeystoreContent {
  records: readonly { owner: Owner; record: SealedCredentials }[]
  /** By name. */
  notes: ReadonlyMap<string, string>
}

/** For many records, one after the other: what each statement may take is short all the same. */
const LONGEST_MS = 60_000

/**
 * Puts a whole keystore into a database that has none, in one transaction: all of it or nothing. `isCurrent` is asked just before the end.
 *
 * @param where of the database, for messages.
 * @throws {StartupError} (rejects) where there is a keystore already, or `isCurrent` says no.
 */
export async function importKeystore(
  { inTransaction }: Database,
  { records, notes }: KeystoreContent,
  isCurrent: () => Promise<boolean>,
  where: string,
): Promise<void> {
  await inTransaction(async (run) => {
    // No server can begin to use it meanwhile.
    await run('LOCK TABLE svc_mcp.credentials, svc_mcp.notes IN EXCLUSIVE MODE')
    const { rows } = await run<{ is_used: boolean }>(
      `SELECT EXISTS (SELECT 1 FROM svc_mcp.credentials) OR EXISTS (SELECT 1 FROM svc_mcp.notes WHERE name = 'kek') AS is_used`,
    )
    if (rows[0]?.is_used !== false)
      throw new StartupError({
        problem: `The database at ${where} has a keystore already`,
        remedy: 'Nothing was moved: name a database that no server has used yet.',
      })
    for (const { owner, record } of records) await putRecord(run, owner, record)
    for (const [name, value] of notes)
      await run(
        'INSERT INTO svc_mcp.notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
        [name, value],
      )
    if (!(await isCurrent()))
      throw new StartupError({
        problem: 'The keystore was changed while it was being moved, so servers are still running on its file',
        remedy: 'Nothing was moved: stop all servers first, then run this again.',
      })
  }, LONGEST_MS)
}
