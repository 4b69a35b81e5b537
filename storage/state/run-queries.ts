import { statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type Database from 'libsql'

/** One value of a row, as it goes in. */
export type Value = string | number | Uint8Array

/** Rows come out as they are declared in the schema; every statement is prepared once. */
export interface Sql {
  /** The first row. */
  one<Row>(sql: string, ...values: Value[]): Row | undefined
  all<Row>(sql: string, ...values: Value[]): Row[]
  /** How many rows it changed. */
  run(sql: string, ...values: Value[]): number
}

/** One connection to the file, for all requests of the process. */
export interface Queries {
  /** Rejects with Error. */
  read: <T>(work: (sql: Sql) => T) => Promise<T>
  /**
   * Writes everything that `work` writes, or nothing; it is on disk when this resolves. Rejects with Error, and then, as far as
   * can be known, nothing was written. A locked file is retried for `lockWaitMs`, without blocking the event loop.
   */
  write: <T>(work: (sql: Sql) => T, lockWaitMs?: number) => Promise<T>
  /**
   * Keeps everybody, other processes too, from writing while `work` runs, and then writes what `write` does, before any of them can. Nothing
   * is written where `work` rejects. Reads go on; `write` of this connection rejects meanwhile.
   */
  holdStill: (work: () => Promise<void>, write: (sql: Sql) => void) => Promise<void>
  close: () => void
}

/** What another process may hold the file for at most, before a call is refused. */
const LOCK_WAIT_MS = 5000

/**
 * Every write is BEGIN IMMEDIATE, its statements, COMMIT, in one turn of the event loop. BEGIN goes through `exec`, which leaves nothing
 * behind when the file is busy; a prepared statement that ended in SQLITE_BUSY would stay open in libsql 0.5 until it is run again, and the
 * later writes of the connection would look done without ever being committed (tursodatabase/libsql-js#238).
 *
 * @param path of the file, to notice when another one takes its place: what is written to the old one then would be lost.
 */
export function runQueries(db: Database.Database, path: string): Queries {
  const sql = prepareOnce(db)
  const opened = identify(path)
  let isClosed = false
  let isHeld = false

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
    if (isHeld) throw new Error(`'${path}' is held still`)
    check()
    db.exec('BEGIN IMMEDIATE')
    try {
      const result = work(sql)
      db.exec('COMMIT')
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
    } catch (error) {
      throw describe(error, path)
    }
  }

  return {
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
        // libsql lets go of the file only when its statements are collected; so that the file is whole by itself already now:
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // The log stays beside the file and is read at the next start.
      }
      db.close()
    },
  }
}

/**
 * Writes all of it or nothing, at the same pace as running processes do, but with the event loop stopped: for a start. SQLite's own wait
 * tries every 100 ms, and beside processes that try every few a start could wait for ever.
 *
 * @throws the error of SQLite, SQLITE_BUSY where others have held the file all the while.
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
    // A failed write has often ended the transaction already.
    if (db.inTransaction) db.exec('ROLLBACK')
  } catch {
    // The next call, where one comes, tries this again before anything else.
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

/** Milliseconds to the next attempt: spread, so that several processes do not meet again and again. */
const spread = () => Math.random() * 5

function isBusy(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)
}

/** An error of SQLite by its code; its own text is kept as the cause. */
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
