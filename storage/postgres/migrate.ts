import { StartupError } from '../../schemas/config.js'
import type { Database, Query } from './connect.js'
import { MIGRATIONS, PROGRAM_SCHEMA } from './migrations.js'

/**
 * The id of the advisory lock that a program holds during a migration. It is the number whose bytes spell 'svc-mcp'.
 */
const LOCK = String(0x7376632d6d6370n)

/**
 * The time limit, in milliseconds, of one migration step, which may be slow on large tables. It also limits the wait
 * for another program that is applying the step.
 */
const LONGEST_STEP_MS = 10 * 60_000

/**
 * The schema version of a database: the number of the last step that was applied, and the oldest program version that
 * may use the database.
 */
interface Version {
  number: number
  oldestProgram: number
}

/**
 * Migrates the schema to the current version. Each missing step is applied in its own transaction and under an advisory
 * lock: if several programs start together, one of them does the work and the others wait. A database whose schema is
 * newer than this program is left unchanged.
 *
 * @returns the numbers of the applied steps.
 * @throws {StartupError} (rejects) if only newer programs may use the database, or if a step fails, in which case that
 * step has changed nothing.
 */
export async function migrate(database: Database, where: string): Promise<number[]> {
  const applied: number[] = []
  for (;;) {
    // The version is read before anything is changed. Usually no step is missing, and then the program needs no right
    // to change the schema.
    const version = await readVersion(database.query).catch((error: unknown) => {
      throw unreadable(where, error as Error)
    })
    if (version.oldestProgram > PROGRAM_SCHEMA) throw tooOld(where, version)
    const next = MIGRATIONS.find(({ number }) => number > version.number)
    if (next === undefined) return applied
    if (await apply(database, version, where)) applied.push(next.number)
  }
}

/** Applies the step after the version `seen`. Resolves with false if another program has applied it first. */
async function apply(database: Database, seen: Version, where: string): Promise<boolean> {
  try {
    return await database.inTransaction(async (query) => {
      await query('SELECT pg_advisory_xact_lock($1)', [LOCK])
      const { number } = await readVersion(query)
      if (number !== seen.number) return false
      const step = MIGRATIONS[number]!
      if (number === 0) {
        await query('CREATE SCHEMA IF NOT EXISTS svc_mcp')
        await query(
          'CREATE TABLE svc_mcp.migrations (number integer PRIMARY KEY, oldest_program integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
        )
      }
      await query(step.sql)
      await query('INSERT INTO svc_mcp.migrations (number, oldest_program) VALUES ($1, $2)', [
        step.number,
        step.oldestProgram,
      ])
      return true
    }, LONGEST_STEP_MS)
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    throw new StartupError({
      problem: `MCP_STATE_URL: the schema of the database at ${where} cannot be updated from ${seen.number} to ${seen.number + 1}: ${message}`,
      remedy:
        code === '42501'
          ? 'Run svc-mcp-http migrate as the owner of the database, or allow this user to create schemas: GRANT CREATE ON DATABASE.'
          : 'This step was undone. Run svc-mcp-http migrate again.',
    })
  }
}

async function readVersion(query: Query): Promise<Version> {
  // to_regclass is not used, because its answer may come from a cache that was filled before the lock was granted.
  const found = await query<{ is_there: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = 'svc_mcp' AND c.relname = 'migrations') AS is_there`,
  )
  if (found.rows[0]?.is_there !== true) return { number: 0, oldestProgram: 0 }
  const { rows } = await query<{ number: number; oldest_program: number }>(
    'SELECT coalesce(max(number), 0) AS number, coalesce(max(oldest_program), 0) AS oldest_program FROM svc_mcp.migrations',
  )
  const [{ number, oldest_program: oldestProgram }] = rows as [{ number: number; oldest_program: number }]
  return { number, oldestProgram }
}

const unreadable = (where: string, { message }: Error) =>
  new StartupError({
    problem: `MCP_STATE_URL: the schema of the database at ${where} cannot be read: ${message}`,
    remedy: 'Check the permissions of its user: docs/operations.md lists what a role other than the owner needs.',
  })

const tooOld = (where: string, { number, oldestProgram }: Version) =>
  new StartupError({
    problem: `MCP_STATE_URL: this program is too old for the database at ${where}, whose schema ${number} needs a program that knows schema ${oldestProgram}; this one knows ${PROGRAM_SCHEMA}`,
    remedy:
      'Start a newer release. Schemas cannot be downgraded: for an older program, restore a backup that was made with it.',
  })
