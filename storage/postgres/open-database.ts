import { randomUUID } from 'node:crypto'
import { type DatabaseConfig, StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { shareRecent } from '../share-recent.js'
import { createAdmissions } from './admissions.js'
import { approvals } from './approvals.js'
import { connectDatabase, isCrowded } from './connect.js'
import { migrate } from './migrate.js'
import { noteProblems } from './note-problems.js'
import { challenges, credentialRecords, forgetOld, mendForgotten, notes, usedTokens } from './tables.js'

export interface OpenDatabaseOptions {
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Receives a line for the operator. */
  warn?: (line: string) => void
}

/** The interval of a replica's heartbeat in milliseconds, well below its lease. */
const TEND_MS = 15_000

/**
 * The statement that proves that the database can be written, without changing anyone's data. Each check writes a note
 * of its own and removes the earlier ones that nobody has locked, so that no row of it can be locked.
 */
const WRITE_MARK = `WITH earlier AS (
    DELETE FROM svc_mcp.notes WHERE name IN (
      SELECT name FROM svc_mcp.notes WHERE name >= 'checked' AND name < 'checkee' LIMIT 100 FOR UPDATE SKIP LOCKED))
  INSERT INTO svc_mcp.notes (name, value) VALUES ('checked ' || $1, '')`
/**
 * The time in milliseconds that the database has for the write check. It is shorter than the time that readiness waits
 * for its checks, so that the gate of changing tools knows of a write that hangs as soon as readiness says so.
 */
const WRITTEN_MS = 2500
/** The interval in milliseconds at which a database that could not be written is checked again. */
const AGAIN_MS = 500

/**
 * Opens the server's state in PostgreSQL (D139) and migrates its schema. Waits for a database that does not respond
 * yet.
 *
 * @throws {StartupError} (rejects) if the database stays unreachable, refuses the connection, or may only be used by
 * newer programs.
 */
export async function openDatabase(
  config: DatabaseConfig,
  { now, warn = () => {} }: OpenDatabaseOptions,
): Promise<State> {
  const database = await connectDatabase(config, { warn })
  try {
    await migrate(database, config.where)
    const problems = noteProblems(warn)
    const admissions = config.limits === 'shared' ? createAdmissions(database, problems) : undefined
    let again: NodeJS.Timeout | undefined
    let isClosed = false
    const findProblem = () => database.findProblem() ?? problems.find()
    const throwKnown = () => {
      const known = findProblem()
      if (known !== null) throw known
    }
    const checkWritable = shareRecent(
      async () => {
        const { total, idle, waiting } = database.figures()
        // Waiting for a free connection would only show that the load is high. If the database is unreachable, the
        // statements on the open connections will show it.
        if (waiting > 0 || (idle === 0 && total >= config.poolSize)) return throwKnown()
        try {
          await database.query(WRITE_MARK, [randomUUID()], WRITTEN_MS)
          problems.noteWrite(null)
        } catch (error) {
          if (isCrowded(error as Error)) return throwKnown()
          // While the database does not answer at all, that is the problem, and it ends with the first answer.
          if (database.findProblem() === null) problems.noteWrite(error as Error)
          throw error
        }
      },
      () => performance.now(),
    )
    /** Checks again until the database can be written, even if nobody asks for the readiness of this replica. */
    const watchWrites = () =>
      checkWritable().catch(() => {
        if (!isClosed) again ??= setTimeout(() => ((again = undefined), void watchWrites()), AGAIN_MS).unref()
      })
    const mend = async () => {
      if (await mendForgotten(database))
        warn(
          `Somebody has written to the state database at ${config.where}: the note used_tokens_forgotten_until had a time that no server writes. It is a day ago now, and used confirm tokens stay used.`,
        )
    }
    const tend = async () => {
      try {
        await admissions?.tend()
        await mend()
        await forgetOld(database)
        problems.noteHeartbeat(null)
      } catch (error) {
        problems.noteHeartbeat(error as Error)
      }
      await watchWrites()
    }
    await admissions?.tend()
    await mend()
    const timer = setInterval(() => void tend(), TEND_MS).unref()
    return {
      credentials: credentialRecords(database),
      usedTokens: usedTokens(database),
      challenges: challenges(database, now),
      approvals: approvals(database, now),
      notes: notes(database),
      ...(admissions && { admissions: { count: admissions.count, admit: (question) => admissions.admit(question) } }),
      checkWritable: async () => {
        void watchWrites()
        return checkWritable()
      },
      findProblem,
      pool: database.figures,
      async close() {
        isClosed = true
        clearInterval(timer)
        clearTimeout(again)
        await admissions?.leave().catch(() => {
          // If the replica's places cannot be released, they expire by themselves.
        })
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    if (error instanceof StartupError) throw error
    throw new StartupError({
      problem: `MCP_STATE_URL: the database at ${config.where} cannot be used: ${(error as Error).message}`,
      remedy: 'Check the permissions of its user: docs/operations.md lists what a role other than the owner needs.',
    })
  }
}
