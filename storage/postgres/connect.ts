import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { type DatabaseConfig, inWords, StartupError } from '../../schemas/config.js'
import type { StatePoolFigures } from '../../schemas/state.js'

/** The value of one parameter of an SQL statement. */
export type Value = string | number | Buffer | null | readonly string[]

/**
 * Runs one statement in one round trip, and resolves with its rows and the number of affected rows. Rejects with Error,
 * also if there is no answer within `answerMs`.
 */
export type Query = <Row extends object>(
  sql: string,
  values?: readonly Value[],
  answerMs?: number,
) => Promise<{ rows: Row[]; count: number }>

/** The pool of database connections of one process. */
export interface Database {
  /**
   * Runs a single statement. It takes effect completely or not at all. If no answer comes in time, it is unknown
   * whether it took effect.
   */
  query: Query
  /**
   * Runs `work` on one connection in a transaction. If `work` rejects, the transaction is rolled back, and the error is
   * passed on. `answerMs` limits the time of each statement.
   */
  inTransaction: <T>(work: (query: Query) => Promise<T>, answerMs?: number) => Promise<T>
  /** Returns why the database cannot be queried at the moment, or null if it responds. */
  findProblem: () => Error | null
  figures: () => StatePoolFigures
  close: () => Promise<void>
}

export interface ConnectOptions {
  /** Receives lines for the operator, when the database stops responding and when it responds again. */
  warn: (line: string) => void
}

/** The time limits in milliseconds for running a statement, and for obtaining a connection (idle or new). */
const ANSWER_MS = 5000
export const CONNECTION_MS = 5000
/**
 * The time limit, in milliseconds, of each step of the test that finds out whether the database still answers after a
 * statement got no answer.
 */
const DOUBT_MS = 1000
/** The interval, in milliseconds, at which a database that does not respond is queried again. */
const PROBE_MS = 500
/** The idle time in milliseconds after which a connection is closed. */
const IDLE_MS = 60_000
/** The interval in milliseconds between attempts to reach the database while the program starts. */
const RETRY_MS = 500
/** The time, in milliseconds, after which a program that is still waiting at its start says what it is waiting for. */
const SILENCE_MS = 3000

/** The SQLSTATE of a database server that has no free connection. */
const TOO_MANY_CONNECTIONS = '53300'
/**
 * Matches the error codes which mean that a database server accepts no queries: it is starting or stopping, has no free
 * connection, or is a standby, or the connection to it has failed.
 */
const NOT_SERVING = /^(57P0[123]|53300|25006|08\w{3})$/

/**
 * Connects to PostgreSQL, and waits if it does not respond yet. Rejects with StartupError after the configured time, or
 * at once if the database refuses for a reason that does not pass by waiting. Messages never contain the password.
 *
 * While the database does not respond, statements fail at once instead of each waiting for its own time-out, and the
 * database is queried twice a second to find out whether it responds again.
 */
export async function connectDatabase(config: DatabaseConfig, { warn }: ConnectOptions): Promise<Database> {
  // The driver is imported only here, so that servers with their state in a file do not load it.
  const { Client, Pool } = (await import('pg')).default
  const connection = {
    ...config.connection,
    ssl: config.tls === undefined ? false : readCertificates(config.tls),
    application_name: 'svc-mcp',
  } as const
  const pool = new Pool({
    ...connection,
    max: config.poolSize,
    connectionTimeoutMillis: CONNECTION_MS,
    query_timeout: ANSWER_MS,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
  })
  let problem: Error | null = null
  let probe: NodeJS.Timeout | undefined
  let closing: Promise<void> | undefined
  let doubting: Promise<void> | undefined

  // The pool has already removed the idle connection that failed. All that matters is whether a new connection can be
  // opened.
  pool.on('error', (error: Error & { client?: unknown }) => {
    // The driver adds its client object to the error. The client object contains a key with which anybody could cancel
    // statements on the connection.
    delete error.client
    noteFailure(error)
  })

  function noteFailure(error: Error): void {
    if (!isOutage(error) || closing !== undefined) return
    if (problem === null && isLate(error)) doubting ??= doubt(error).finally(() => (doubting = undefined))
    else declare(error)
  }

  /**
   * Called after a statement got no answer in time. Finds out whether the database answers no query at all, or whether
   * only this statement is stuck, perhaps because somebody has locked a row. A separate connection is used, because all
   * connections of the pool may be waiting for the same row.
   */
  async function doubt(error: Error): Promise<void> {
    const client = new Client({ ...connection, connectionTimeoutMillis: DOUBT_MS, query_timeout: DOUBT_MS })
    client.on('error', () => {
      // An error that ends the connection also rejects the statement that runs on it, and is handled there.
    })
    try {
      await client.connect()
      requireServing(await client.query(IS_SERVING))
    } catch (cause) {
      // A database that reports that it has no free connection is responding.
      if ((cause as { code?: string }).code !== TOO_MANY_CONNECTIONS) declare(error)
    } finally {
      // Closing the connection is not awaited, because the database may never answer on it.
      client.end().catch(() => {})
    }
  }

  function declare(error: Error): void {
    if (closing !== undefined) return
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
      // Whatever the error is, the database is queried again later; even a refused login may be temporary, during a
      // failover.
      declare(error as Error)
    }
  }

  /** Runs `work`; rejects at once if the database does not respond at the moment. */
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
    async <Row extends object>(text: string, values: readonly Value[] = [], limitMs: number = answerMs) => {
      // The statement has no name, so that a connection pooler in front of the database can run each statement on
      // another connection.
      const statement = { text, values: [...values], query_timeout: limitMs }
      const { rows, rowCount } = await on.query<Row & pg.QueryResultRow>(statement)
      return { rows, count: rowCount ?? 0 }
    }

  try {
    await waitUntilThere(() => pool.query(IS_SERVING).then(requireServing), config, warn)
  } catch (error) {
    await pool.end()
    throw error
  }
  problem = null
  clearTimeout(probe)
  probe = undefined

  return {
    query: (...statement) => guarded(() => queryOn(pool)(...statement)),
    inTransaction: (work, answerMs) =>
      guarded(async () => {
        const client = await pool.connect()
        // The pool handles errors only of idle connections. An unhandled error of another connection would end the
        // process.
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
          // After a failure, the connection is closed, which rolls back the transaction.
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

/** Reads the certificate files. Throws StartupError if one cannot be read. */
function readCertificates({ rootCertFile, certFile, keyFile }: NonNullable<DatabaseConfig['tls']>) {
  const read = (parameter: string, path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw new StartupError({
        problem: `MCP_STATE_URL: ${parameter} '${path}' cannot be read: ${inWords(error)}`,
        remedy: 'Use the path of a PEM file that the user of this server can read.',
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

async function waitUntilThere(
  ask: () => Promise<void>,
  { where, connectTimeoutSeconds: seconds }: DatabaseConfig,
  warn: ConnectOptions['warn'],
): Promise<void> {
  const deadline = performance.now() + seconds * 1000
  let last: Error | undefined
  const silence = setTimeout(() => {
    const why = last === undefined ? 'no answer yet' : describe(last)
    warn(
      `Waiting for the database of MCP_STATE_URL at ${where}: ${why}. The start is given up after ${seconds} s (MCP_STATE_CONNECT_TIMEOUT_SECONDS).`,
    )
  }, SILENCE_MS)
  try {
    for (;;) {
      last = await ask().then(
        () => undefined,
        (error: Error) => error,
      )
      if (last === undefined) return
      if (!isOutage(last) || performance.now() + RETRY_MS > deadline) throw refusalOf(last)
      await wait(RETRY_MS)
    }
  } finally {
    clearTimeout(silence)
  }

  function refusalOf(error: Error): StartupError {
    const waited = isOutage(error) ? ` within ${seconds} s` : ''
    return new StartupError({
      problem: `MCP_STATE_URL: the database at ${where} cannot be used${waited}: ${describe(error)}`,
      remedy: isOutage(error)
        ? 'Start it, or check the host and the port. MCP_STATE_CONNECT_TIMEOUT_SECONDS sets how long a start waits for it.'
        : 'Check the user, the password, the database and the certificates that MCP_STATE_URL names.',
    })
  }
}

/**
 * Returns true if an error of the pool means that no connection became free in time. This shows high load and says
 * nothing about the database. If the database does not respond, the statements on the open connections will show it.
 */
export const isCrowded = (error: Error): boolean => error.message === 'timeout exceeded when trying to connect'

/** Returns true if the error means that a statement on an open connection got no answer in time. */
export const isLate = (error: Error): boolean => error.message === 'Query read timeout'

/** Returns true if the statement waited too long for a row or table that another session has locked. */
export const isLocked = (error: Error): boolean => (error as { code?: string }).code === '55P03'

/**
 * Returns true if the error is about the values or rows of one statement (SQLSTATE classes for data exceptions,
 * violated constraints and exceeded limits). Such an error says nothing about other statements.
 */
export const isOfRows = (error: Error): boolean => /^(22|23|54)/.test((error as { code?: string }).code ?? '')

/**
 * Returns true if the error suggests that the whole database does not respond: it cannot be reached, accepts no queries
 * or did not answer in time. Returns false if it refused one statement, or if the pool had no free connection.
 */
function isOutage(error: Error): boolean {
  const { code } = error as { code?: string }
  if (isCrowded(error)) return false
  if (code === undefined) return /timeout|terminated|not queryable|closed/i.test(error.message)
  if (/^E[A-Z_]+$/.test(code)) return !/^E(RR|PROTO)/.test(code)
  return NOT_SERVING.test(code)
}

/**
 * Describes an error for the operator, with its code and the driver's words. These contain neither the password nor any
 * stored value.
 */
export function describe(error: Error): string {
  const { code } = error as { code?: string }
  // If a host name has several addresses, there is one error for each address. The first one is reported.
  const [first = error] = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  const words = first.message.replaceAll(/\s+/g, ' ').slice(0, 200)
  return code === undefined || words.includes(code) ? words : `${words} (${code})`
}
