import { randomUUID } from 'node:crypto'
import { type DatabaseConfig, StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { revocations } from '../revocations.js'
import { shareRecent } from '../share-recent.js'
import { createAdmissions } from './admissions.js'
import { approvals } from './approvals.js'
import { connectDatabase, isCrowded } from './connect.js'
import { migrate } from './migrate.js'
import { noteProblems } from './note-problems.js'
import { outbox } from './outbox.js'
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
 * A statement that tests whether the database can be written, without changing anyone's data. Each run writes a new
 * note and removes the notes of earlier runs. It skips locked notes, so that a locked row cannot block it.
 */
const WRITE_MARK = 'SELECT svc_mcp.check_write_1($1)'
/**
 * Time limit, in milliseconds, of the test whether the database can be written. It is shorter than the time limit of a
 * readiness request. Therefore, when readiness reports a hanging write, the gate that refuses changing tools already
 * knows of it.
 */
const WRITTEN_MS = 2500
/** Interval, in milliseconds, at which the write check is repeated after it has failed. */
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
        // If all connections are in use, the test would wait for a free one, and its failure would only show that the
        // load is high. If the database is unreachable, the statements on the other connections show it.
        if (waiting > 0 || (idle === 0 && total >= config.poolSize)) return throwKnown()
        try {
          await database.query(WRITE_MARK, [randomUUID()], WRITTEN_MS)
          problems.noteWrite(null)
        } catch (error) {
          if (isCrowded(error as Error)) return throwKnown()
          // If the database does not answer at all, this is not recorded as a problem with writing. The outage is over
          // with the database's first answer, whereas a recorded problem would remain.
          if (database.findProblem() === null) problems.noteWrite(error as Error)
          throw error
        }
      },
      () => performance.now(),
    )
    /** Repeats the write check until it passes, even if nobody asks whether this replica is ready. */
    const watchWrites = () =>
      checkWritable().catch(() => {
        if (!isClosed) again ??= setTimeout(() => ((again = undefined), void watchWrites()), AGAIN_MS).unref()
      })
    const mend = async () => {
      if (await mendForgotten(database))
        warn(
          `The note used_tokens_forgotten_until in the state database at ${config.where} had a time far ahead, and is a day ago now. Somebody has written it, or the clocks of the database and of the servers were ahead for more than a day. If they were, change MCP_CONFIRM_HMAC_KEY without keeping the previous key, so that no confirm token from then is valid.`,
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
    // If a note with a wrong time cannot be repaired now, `claim` ignores it anyway, and the next heartbeat tries
    // again.
    await mend().catch(problems.noteHeartbeat)
    const timer = setInterval(() => void tend(), TEND_MS).unref()
    const allNotes = notes(database)
    return {
      credentials: credentialRecords(database),
      usedTokens: usedTokens(database),
      challenges: challenges(database, now),
      approvals: approvals(database, now),
      outbox: outbox(database, now),
      notes: allNotes,
      revocations: revocations(allNotes),
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
