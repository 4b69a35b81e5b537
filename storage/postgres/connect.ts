import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { type DatabaseConfig, inWords, StartupError } from '../../schemas/config.js'
import type { StatePoolFigures } from '../../schemas/state.js'

/** One value of a statement, as it goes in. */
export type Value = string | number | Buffer | null | readonly string[]

/** Runs one statement, in one round trip, and resolves with its rows and how many it touched. Rejects with Error. */
export type Query = <Row extends object>(
  sql: string,
  values?: readonly Value[],
) => Promise<{ rows: Row[]; count: number }>

/** The pool of connections of one process. */
export interface Database {
  /** By itself it is done or not done at all. Where no answer came in time, nobody knows which. */
  query: Query
  /**
   * Runs all of `work` on one connection, and commits it, or nothing. What it rejects with comes through. `answerMs`: what each statement
   * may take.
   */
  inTransaction: <T>(work: (query: Query) => Promise<T>, answerMs?: number) => Promise<T>
  /** Why nothing can be asked at the moment; null while answers come. */
  findProblem: () => Error | null
  figures: () => StatePoolFigures
  close: () => Promise<void>
}

export interface ConnectOptions {
  /** Takes a line for the operator: the database has gone, or is back. */
  warn: (line: string) => void
}

/** What one statement may take until its answer, and before it one connection until it is free or open: milliseconds. */
const ANSWER_MS = 5000
const CONNECTION_MS = 5000
/** How often a database that has gone is asked whether it is back. */
const PROBE_MS = 1000
/** Connections that nothing has used for so long are closed. */
const IDLE_MS = 60_000
/** How often a database that does not answer yet is tried while the program starts. */
const RETRY_MS = 500

/** The server is there, but serves nobody: starting, stopping, without free connections, or standing by for another one. */
const NOT_SERVING = /^(57P0[123]|53300|25006|08\w{3})$/

/**
 * Connects to PostgreSQL and waits for it if it does not answer yet. Rejects with StartupError once that has taken too long, and at once
 * where the answer is a refusal that waiting does not mend. No message has the password in it.
 *
 * While no answers come, statements fail at once instead of each after its time: one of our own asks once a second whether the database is
 * back.
 */
export async function connectDatabase(config: DatabaseConfig, { warn }: ConnectOptions): Promise<Database> {
  // Servers whose state is in a file do without the driver.
  const { Pool } = (await import('pg')).default
  const pool = new Pool({
    ...config.connection,
    ssl: config.tls === undefined ? false : readCertificates(config.tls),
    max: config.poolSize,
    connectionTimeoutMillis: CONNECTION_MS,
    query_timeout: ANSWER_MS,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: 'svc-mcp',
  })
  let problem: Error | null = null
  let probe: NodeJS.Timeout | undefined
  let closing: Promise<void> | undefined

  // An idle connection that breaks is gone by then; what matters is whether the next one can be made.
  pool.on('error', noteFailure)

  function noteFailure(error: Error): void {
    if (!isOutage(error) || closing !== undefined) return
    if (problem === null) warn(`The state database at ${config.where} does not answer: ${describe(error)}`)
    problem = error
    probe ??= setTimeout(() => void ask(), PROBE_MS).unref()
  }

  async function ask(): Promise<void> {
    probe = undefined
    try {
      await pool.query(IS_SERVING).then(requireServing)
      problem = null
      warn(`The state database at ${config.where} answers again`)
    } catch (error) {
      noteFailure(error as Error)
    }
  }

  /** Rejects at once while the database is gone. */
  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    if (problem !== null) throw new Error(`the state database does not answer: ${describe(problem)}`)
    try {
      return await work()
    } catch (error) {
      noteFailure(error as Error)
      throw error
    }
  }

  const queryOn =
    (on: Pick<pg.Pool | pg.ClientBase, 'query'>, answerMs = ANSWER_MS): Query =>
    async <Row extends object>(text: string, values: readonly Value[] = []) => {
      // Not named, so that a pooler between us and the database may hand each statement to another connection.
      const statement = { text, values: [...values], query_timeout: answerMs }
      const { rows, rowCount } = await on.query<Row & pg.QueryResultRow>(statement)
      return { rows, count: rowCount ?? 0 }
    }

  try {
    await waitUntilThere(() => pool.query(IS_SERVING).then(requireServing), config)
  } catch (error) {
    await pool.end()
    throw error
  }
  problem = null
  clearTimeout(probe)
  probe = undefined

  return {
    query: (sql, values) => guarded(() => queryOn(pool)(sql, values)),
    inTransaction: (work, answerMs) =>
      guarded(async () => {
        const client = await pool.connect()
        // The pool listens to idle connections alone, and an error that nobody hears ends the process.
        client.on('error', noteFailure)
        let failure: Error | undefined
        try {
          const query = queryOn(client, answerMs)
          await query('BEGIN')
          const result = await work(query)
          await query('COMMIT')
          return result
        } catch (error) {
          failure = error as Error
          throw error
        } finally {
          client.off('error', noteFailure)
          // A connection that is closed in the middle of a transaction rolls it back.
          client.release(failure)
        }
      }),
    findProblem: () => problem,
    figures: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close() {
      clearTimeout(probe)
      return (closing ??= pool.end())
    },
  }
}

/** What names certificates in files, as their content. Throws StartupError. */
function readCertificates({ rootCertFile, certFile, keyFile }: NonNullable<DatabaseConfig['tls']>) {
  const read = (parameter: string, path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw new StartupError({
        problem: `MCP_STATE_URL: ${parameter} '${path}' cannot be read: ${inWords(error)}`,
        remedy: 'Give the path of a PEM file that the user of this server may read.',
      })
    }
  }
  return {
    ...(rootCertFile && { ca: read('sslrootcert', rootCertFile) }),
    ...(certFile && { cert: read('sslcert', certFile) }),
    ...(keyFile && { key: read('sslkey', keyFile) }),
  }
}

const IS_SERVING = 'SELECT pg_is_in_recovery() AS stands_by'

function requireServing({ rows: [row] }: { rows: { stands_by: boolean }[] }): void {
  if (row?.stands_by !== false) throw Object.assign(new Error('it is a standby'), { code: '25006' })
}

async function waitUntilThere(ask: () => Promise<void>, config: DatabaseConfig): Promise<void> {
  const deadline = performance.now() + config.connectTimeoutSeconds * 1000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isOver = performance.now() + RETRY_MS > deadline
      if (isOutage(error as Error) && !isOver) {
        await wait(RETRY_MS)
        continue
      }
      const waited = isOutage(error as Error) ? ` within ${config.connectTimeoutSeconds} s` : ''
      throw new StartupError({
        problem: `MCP_STATE_URL: the database at ${config.where} cannot be used${waited}: ${describe(error as Error)}`,
        remedy: isOutage(error as Error)
          ? 'Start it, or check the host and the port. MCP_STATE_CONNECT_TIMEOUT_SECONDS says how long a start waits for it.'
          : 'Check the user, the password, the database and the certificates that MCP_STATE_URL names.',
      })
    }
  }
}

/**
 * Whether no connection became free in time, in the words of the pool: there is a crowd, which says nothing of the database. If that has gone,
 * those who hold a connection find out.
 */
export const isCrowded = (error: Error): boolean => error.message === 'timeout exceeded when trying to connect'

/** Whether nothing can be asked now, as opposed to an answer that says no. */
function isOutage(error: Error): boolean {
  const { code } = error as { code?: string }
  if (isCrowded(error)) return false
  if (code === undefined) return /timeout|terminated|not queryable|closed/i.test(error.message)
  if (/^E[A-Z_]+$/.test(code)) return !/^E(RR|PROTO)/.test(code)
  return NOT_SERVING.test(code)
}

/** For the operator: the code and the driver's words, which hold neither the password nor any value of ours. */
function describe(error: Error): string {
  const { code } = error as { code?: string }
  // Several addresses of one name: the first says enough.
  const [first = error] = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  const words = first.message.replaceAll(/\s+/g, ' ').slice(0, 200)
  return code === undefined || words.includes(code) ? words : `${words} (${code})`
}
