import { randomUUID } from 'node:crypto'
import { type DatabaseConfig, StartupError } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { State } from '../../schemas/state.js'
import { shareRecent } from '../share-recent.js'
import { createAdmissions } from './admissions.js'
import { approvals } from './approvals.js'
import { connectDatabase, isCrowded, isLate, isOfRows } from './connect.js'
import { migrate } from './migrate.js'
import { challenges, credentialRecords, forgetOld, notes, usedTokens } from './tables.js'

export interface OpenDatabaseOptions {
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** Receives a line for the operator. */
  warn?: (line: string) => void
}

/** The interval of a replica's heartbeat in milliseconds, well below its lease. */
const TEND_MS = 15_000

/** A statement that tests whether the database can be written, without changing anyone's data. */
const WRITE_MARK = `INSERT INTO svc_mcp.notes (name, value) VALUES ('checked', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

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
    const admissions = config.limits === 'shared' ? createAdmissions(database) : undefined
    let problem: Error | null = null
    const noteProblem = (error: Error) => {
      // If a statement got no answer in time, `connectDatabase` finds out whether the database responds at all.
      if (!isCrowded(error) && !isLate(error) && !isOfRows(error)) problem = error
    }
    const tend = async () => {
      try {
        await admissions?.tend()
        await forgetOld(database)
        problem = null
      } catch (error) {
        noteProblem(error as Error)
      }
    }
    await admissions?.tend()
    const timer = setInterval(() => void tend(), TEND_MS).unref()
    return {
      credentials: credentialRecords(database),
      usedTokens: usedTokens(database),
      challenges: challenges(database, now),
      approvals: approvals(database, now),
      notes: notes(database),
      ...(admissions && {
        admissions: {
          count: admissions.count,
          async admit(question) {
            try {
              const admitted = await admissions.admit(question)
              problem = null
              return admitted
            } catch (error) {
              if (!(error instanceof ToolError)) noteProblem(error as Error)
              throw error
            }
          },
        },
      }),
      checkWritable: shareRecent(async () => {
        const { total, idle, waiting } = database.figures()
        const isCrowd = waiting > 0 || (idle === 0 && total >= config.poolSize)
        if (!isCrowd) {
          await database.query(WRITE_MARK, [randomUUID()])
          // The database can be written now, so an earlier problem is no longer a reason to refuse calls.
          problem = null
          return
        }
        // If no connection is free, the test is skipped, because waiting would only show that the load is high. If the
        // database does not respond, the statements on the open connections will show it.
        const gone = database.findProblem() ?? problem
        if (gone !== null) throw gone
      }, now),
      findProblem: () => database.findProblem() ?? problem,
      pool: database.figures,
      async close() {
        clearInterval(timer)
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
