import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'libsql'
import { inWords, StartupError } from '../../schemas/config.js'
import { openState, type StateOptions } from './open-state.js'
import { makeEmpty, syncDirectory } from './create-file.js'

/** Maximum time, in milliseconds, to wait while another process is writing. */
const LOCK_WAIT_MS = 15_000

/**
 * The SQL that removes the id to which confirm tokens are bound. This id must not be restored, because tokens that were
 * used after the backup would become valid again (D42). The next start gives the file a new id.
 */
const FORGET = `DELETE FROM notes WHERE name = 'confirm_tokens'`

/**
 * Copies the state file to `target` as it is at one moment, while servers continue to read and write it. The copy can
 * be read only by its owner, and `target` exists only when the copy is complete, checked and on the disk. The copy is a
 * state file itself: to restore it, put it in the place of the original.
 *
 * @returns the size of the copy in bytes.
 * @throws {StartupError} if the file is missing or cannot be used, or if the target exists or cannot be written.
 */
export function backUpState(path: string, target: string, options: Pick<StateOptions, 'variable' | 'warn'>): number {
  const copy = resolve(target)
  if (lstatSync(copy, { throwIfNoEntry: false }) !== undefined)
    throw new StartupError({
      problem: `'${copy}' exists already`,
      remedy: 'A backup never replaces a file. Use a new name.',
    })
  const now = () => Date.now()
  // The file is opened first because this makes the same checks as a server start: that the file belongs to this
  // program and is undamaged.
  openState(path, { ...options, now }).close()
  const draft = `${copy}.new-${process.pid}-${randomBytes(6).toString('hex')}`
  try {
    makeEmpty(draft)
    copyInto(draft, path)
    openState(draft, { variable: 'The backup', now }).close()
    syncFile(draft)
    linkSync(draft, copy)
    syncDirectory(dirname(copy))
    return statSync(copy).size
  } catch (error) {
    if (error instanceof StartupError) throw error
    const problem = `'${copy}' cannot be written: ${inWords(error)}`
    throw new StartupError({ problem, remedy: 'Use a file in an existing folder to which this user can write.' })
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(draft + end, { force: true })
  }
}

function copyInto(draft: string, path: string): void {
  const source = new Database(path)
  try {
    source.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`)
    source.exec(`VACUUM INTO '${draft.replaceAll("'", "''")}'`)
  } finally {
    source.close()
  }
  const made = new Database(draft)
  try {
    // VACUUM does not copy the WAL mode, so it is set again.
    made.exec('PRAGMA journal_mode = WAL')
    made.exec(FORGET)
    made.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    made.close()
  }
}

function syncFile(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
