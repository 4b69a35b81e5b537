import { StartupError, type DatabaseConfig } from '../../schemas/config.js'
import type { Owner } from '../../schemas/caller.js'
import type { ApprovalPlace, State } from '../../schemas/state.js'
import { KEPT_KEY_NOTES } from '../../storage/keystore/change-kek.js'
import { nameOfLastCheck } from '../../storage/keystore/last-checks.js'
import { connectDatabase, type Database } from '../../storage/postgres/connect.js'
import { importKeystore, type KeystoreContent } from '../../storage/postgres/import-keystore.js'
import { migrate } from '../../storage/postgres/migrate.js'
import { namesOfPerson } from '../../storage/people.js'
import { nameOfRevocation } from '../../storage/revocations.js'
import { type FileState, openState } from '../../storage/state/open-state.js'
import { MOVED_NOTE } from '../../storage/state/tables.js'
import { collectLines, type CommandReport, requireState } from './command-report.js'

const PAGE = 200

/**
 * Runs `svc-mcp-http move-state --from FILE --to URL`: moves a keystore, still encrypted, from its file to a database
 * without a keystore, and marks the file so that no server uses it again. The file is locked from the beginning of the
 * copy until it is marked, so a server that is still running loses no change that it has confirmed to a client (D166).
 * Unused confirm tokens and open confirmation questions are not moved; the calls to which they belong must be made
 * again. Open approvals and waiting notifications are not moved either; the report gives their numbers (D304).
 *
 * @throws {StartupError} (rejects) if there is no file or it is empty, or if the database has another keystore or
 * cannot be used. In these cases, nothing has changed. If the database has stored the keystore but the file could not
 * be marked, or no answer came, the next run completes the move.
 */
export async function moveState(from: string, to: DatabaseConfig): Promise<CommandReport> {
  requireState({ path: from, variable: '--from' }, 'move')
  const { lines, say } = collectLines()
  const warn = (line: string) => say('warn', line)
  const source = openState(from, { now: () => Date.now(), variable: '--from', warn })
  let moved = 0
  try {
    // The file is checked before anything is created in the database. It is locked only after the connection to the
    // database has succeeded.
    await readKeystore(source, from)
    await withDatabase(to, warn, (database) =>
      source.moveAway(to.where, async () => {
        const content = await readKeystore(source, from)
        await importKeystore(database, content, to.where)
        moved = content.records.length
      }),
    ).catch((error: unknown) => {
      if (error instanceof StartupError) throw error
      throw new StartupError({
        problem: `The keystore '${from}' may not have been moved to the database at ${to.where}: ${(error as Error).message}`,
        remedy: 'Run this again to complete the move. Until then, the file is in use as before.',
      })
    })
    say('info', `Moved ${moved} registrations from '${from}' to the database at ${to.where}`)
    const left = await describeLeft(source)
    if (left !== null) say('warn', left)
    say('info', `Start the servers with MCP_STATE_URL. '${from}' is kept, but no server uses it any more`)
    return { lines, ok: true }
  } finally {
    source.close()
  }
}

/** Describes what the file contains but the database does not receive; null if there is nothing. */
async function describeLeft({ approvals, outbox }: Pick<FileState, 'approvals' | 'outbox'>): Promise<string | null> {
  let open = 0
  for (let after: ApprovalPlace | null | undefined = null; after !== undefined;) {
    const page = await approvals.live(after, PAGE)
    open += page.length
    after = page.length < PAGE ? undefined : page.at(-1)
  }
  const { waiting } = await outbox.look()
  const left = [
    ...(open > 0 ? [`open approvals: ${open} (these calls have to be asked for again)`] : []),
    ...(waiting > 0 ? [`notifications without an answer: ${waiting} (the audit log has what they are about)`] : []),
  ]
  return left.length === 0 ? null : `Not moved: ${left.join(', ')}`
}

/** Runs `svc-mcp-http migrate`: updates the schema of the database. Rejects with StartupError. */
export async function migrateDatabase(config: DatabaseConfig): Promise<CommandReport> {
  const { lines, say } = collectLines()
  await withDatabase(
    config,
    (line) => say('warn', line),
    async (_database, applied) => {
      if (applied.length === 0) say('info', `The schema of the database at ${config.where} is up to date`)
      for (const number of applied) say('info', `The database at ${config.where} has schema ${number} now`)
      return Promise.resolve()
    },
  )
  return { lines, ok: true }
}

async function withDatabase(
  config: DatabaseConfig,
  warn: (line: string) => void,
  work: (database: Database, applied: readonly number[]) => Promise<void>,
): Promise<void> {
  const database = await connectDatabase(config, { warn })
  try {
    await work(database, await migrate(database, config.where))
  } finally {
    await database.close()
  }
}

/** Reads the keystore that is to be moved. Rejects with StartupError if it does not exist or has already been moved. */
async function readKeystore({ credentials, notes, revocations }: FileState, from: string): Promise<KeystoreContent> {
  const moved = await notes.get(MOVED_NOTE)
  if (moved !== null)
    throw new StartupError({
      problem: `The keystore '${from}' has been moved to the database at ${moved}`,
      remedy: 'You only have to set MCP_STATE_URL to that database.',
    })
  const records: Awaited<ReturnType<State['credentials']['page']>> = []
  for (let after: Owner | null | undefined = null; after !== undefined;) {
    const page = await credentials.page(after, PAGE)
    records.push(...page)
    after = page.length < PAGE ? undefined : page.at(-1)!.owner
  }
  const kept = new Map<string, string>()
  const revoked: string[] = []
  for await (const { owner } of revocations.all()) revoked.push(nameOfRevocation(owner))
  const known = records.flatMap(({ owner }) => [nameOfLastCheck(owner), ...namesOfPerson(owner)])
  for (const name of [...KEPT_KEY_NOTES, ...revoked, ...known]) {
    const value = await notes.get(name)
    if (value !== null) kept.set(name, value)
  }
  if (kept.size === 0)
    throw new StartupError({
      problem: `There is no keystore in '${from}'`,
      remedy: 'In shared mode there is nothing to move: set MCP_STATE_URL and start the servers.',
    })
  return { records, notes: kept }
}
