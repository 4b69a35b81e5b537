import { statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type Database from 'libsql'

/** The value of one parameter of an SQL statement. */
export type Value = string | number | Uint8Array

/**
 * Functions that run SQL statements. Each statement is prepared only once. Rows have the types that the schema
 * declares.
 */
export interface Sql {
  /** Returns the first row of the result; undefined if there are no rows. */
  one<Row>(sql: string, ...values: Value[]): Row | undefined
  all<Row>(sql: string, ...values: Value[]): Row[]
  /** Runs a statement, and returns the number of changed rows. */
  run(sql: string, ...values: Value[]): number
}

/** One connection to the file, shared by all requests of the process. */
export interface Queries {
  /**
   * Runs `work`, which reads from the file. If the file is locked, `work` is run again for up to five seconds. Rejects
   * with Error.
   */
  read: <T>(work: (sql: Sql) => T) => Promise<T>
  /** Runs `work`, which reads from the file, at once. Returns undefined if the file is locked. Throws Error. */
  readNow: <T>(work: (sql: Sql) => T) => T | undefined
  /**
   * Returns an object that stays the same as long as nobody has changed the file. The file is looked at once in each
   * turn of the event loop, so a change that another process makes later in the turn is seen in the next one. Returns
   * undefined if the file is locked. Throws Error.
   */
  edition: () => object | undefined
  /**
   * Runs `work` in a transaction, which takes effect completely or not at all. Resolves when the changes are on the
   * disk. A rejection means, as far as can be known, that nothing was written. While the file is locked, the
   * transaction is tried again for `lockWaitMs` without blocking the event loop.
   */
  write: <T>(work: (sql: Sql) => T, lockWaitMs?: number) => Promise<T>
  /**
   * Keeps all processes from writing to the file while `work` runs, and then runs `write` before any of them can write.
   * If `work` rejects, `write` does not run. Meanwhile, reads continue, but calls of the method `write` of this object
   * reject.
   */
  holdStill: (work: () => Promise<void>, write: (sql: Sql) => void) => Promise<void>
  close: () => void
}

/**
 * Maximum time, in milliseconds, that a call waits while another process has locked the file, before the call is
 * refused.
 */
const LOCK_WAIT_MS = 5000

/**
 * Number of transactions that this process has committed, to any file. A connection's `data_version` changes only with
 * the commits of other connections.
 */
let commits = 0

/**
 * Creates the functions that read and write the file. Each write runs in one turn of the event loop: BEGIN IMMEDIATE,
 * its statements, and COMMIT. BEGIN is run with `exec`, which leaves nothing open if the file is busy. In libsql 0.5, a
 * prepared statement that failed with SQLITE_BUSY would stay open until it is run again; later writes on the connection
 * would seem to succeed but never be committed (tursodatabase/libsql-js#238).
 *
 * @param path the path of the file. It is used to check that no other file has taken its place, because writes to the
 * old file would be lost.
 */
export function runQueries(db: Database.Database, path: string): Queries {
  const sql = prepareOnce(db)
  const opened = identify(path)
  let isClosed = false
  let isHeld = false
  let last = { version: NaN, commits: NaN }
  let isLookedAt = false
  const endTurn = () => (isLookedAt = false)

  function check(): void {
    if (isClosed) throw new Error(`'${path}' is closed`)
    if (identify(path) !== opened) throw new Error(`'${path}' was replaced while it was in use: restart the server`)
    if (db.inTransaction && !isHeld) db.exec('ROLLBACK')
  }

  function readNow<T>(work: (sql: Sql) => T): T {
    check()
    return work(sql)
  }

  function writeNow<T>(work: (sql: Sql) => T): T {
    if (isHeld) throw new Error(`'${path}' is being moved`)
    check()
    db.exec('BEGIN IMMEDIATE')
    try {
      const result = work(sql)
      db.exec('COMMIT')
      commits++
      return result
    } catch (error) {
      rollBack(db)
      throw error
    }
  }

  function commit(write: (sql: Sql) => void): void {
    try {
      write(sql)
      db.exec('COMMIT')
      commits++
    } catch (error) {
      throw describe(error, path)
    }
  }

  function lookAgain(): object {
    check()
    const { data_version: version } = sql.one<{ data_version: number }>('PRAGMA data_version')!
    if (version !== last.version || commits !== last.commits) last = { version, commits }
    if (!isLookedAt) setImmediate(endTurn)
    isLookedAt = true
    return last
  }

  function orBusy<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (isBusy(error)) return undefined
      throw describe(error, path)
    }
  }

  return {
    readNow: (work) => orBusy(() => readNow(work)),
    edition: () => (isLookedAt && commits === last.commits ? last : orBusy(lookAgain)),
    read: (work) => untilFree(() => readNow(work), LOCK_WAIT_MS, path),
    write: (work, lockWaitMs = LOCK_WAIT_MS) => untilFree(() => writeNow(work), lockWaitMs, path),
    async holdStill(work, write) {
      const begin = () => {
        check()
        db.exec('BEGIN IMMEDIATE')
        isHeld = true
      }
      await untilFree(begin, LOCK_WAIT_MS, path)
      try {
        await work()
        commit(write)
      } finally {
        isHeld = false
        rollBack(db)
      }
    },
    close() {
      if (isClosed) return
      isClosed = true
      try {
        // libsql releases the file only when its statements are garbage-collected. The checkpoint therefore moves the
        // whole log into the main file before that.
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // If the checkpoint fails, the log stays beside the file, and the next start reads it.
      }
      db.close()
    },
  }
}

/**
 * Runs the statements in one transaction. It blocks the event loop and is therefore used only at start-up. If the file
 * is locked, the transaction is tried again every few milliseconds, as other processes do. SQLite's own wait tries
 * again only every 100 ms and could wait for ever beside these processes.
 *
 * @throws the error of SQLite; SQLITE_BUSY if other processes have locked the file the whole time.
 */
export function writeInTurn(db: Database.Database, statements: string, milliseconds: number): void {
  beginInTurn(db, milliseconds)
  try {
    db.exec(statements)
    db.exec('COMMIT')
  } catch (error) {
    rollBack(db)
    throw error
  }
}

function beginInTurn(db: Database.Database, milliseconds: number): void {
  const deadline = performance.now() + milliseconds
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      db.exec('BEGIN IMMEDIATE')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error
    }
    Atomics.wait(pause, 0, 0, spread())
  }
}

function rollBack(db: Database.Database): void {
  try {
    // A failed write has often ended the transaction already, and then there is nothing to roll back.
    if (db.inTransaction) db.exec('ROLLBACK')
  } catch {
    // If the rollback fails, the next call rolls back before anything else.
  }
}

async function untilFree<T>(attempt: () => T, milliseconds: number, path: string): Promise<T> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw describe(error, path)
    }
    await wait(spread())
  }
}

/**
 * Returns the milliseconds to wait before the next attempt. They are random, so that several processes do not collide
 * again and again.
 */
const spread = () => Math.random() * 5

function isBusy(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)
}

/** Converts a SQLite error to an error that names only the path and the code. The original error becomes its cause. */
function describe(error: unknown, path: string): unknown {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' ? new Error(`'${path}' cannot be used: ${code}`, { cause: error }) : error
}

function identify(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true })
  return `${dev}:${ino}`
}

function prepareOnce(db: Database.Database): Sql {
  const prepared = new Map<string, Database.Statement>()
  function statement(sql: string): Database.Statement {
    let known = prepared.get(sql)
    if (known === undefined) prepared.set(sql, (known = db.prepare(sql)))
    return known
  }
  return {
    one: <Row>(sql: string, ...values: Value[]) => statement(sql).get(...values) as Row | undefined,
    all: <Row>(sql: string, ...values: Value[]) => statement(sql).all(...values) as Row[],
    run: (sql, ...values) => statement(sql).run(...values).changes,
  }
}
