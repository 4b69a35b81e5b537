import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'libsql'
import { inWords, StartupError } from '../../schemas/config.js'
import { openState, type StateOptions } from './open-state.js'
import { makeEmpty, syncDirectory } from './place-file.js'

/** Another process may be writing: milliseconds. */
const LOCK_WAIT_MS = 15_000

/**
 * What must not come back with the file: with the name of the file that they are for, confirm tokens that were used after the backup would
 * be valid again (D42). The next start gives the file a new one.
 */
const FORGET = `DELETE FROM notes WHERE name = 'confirm_tokens'`

/**
 * Copies the state file to `target` as it is at one moment, while servers go on reading and writing it. The copy is whole, checked, on the
 * disk, and readable by its owner only, or it is not there. It is a state file itself: to restore it is to put it in place.
 *
 * @returns its size in bytes.
 * @throws {StartupError} for a file that is missing or cannot be used, and for a target that exists or cannot be written.
 */
export function backUpState(path: string, target: string, options: Pick<StateOptions, 'variable' | 'warn'>): number {
  const copy = resolve(target)
  if (lstatSync(copy, { throwIfNoEntry: false }) !== undefined)
    throw new StartupError({
      problem: `'${copy}' exists already`,
      remedy: 'A backup replaces nothing: name a new file.',
    })
  const now = () => Date.now()
  // Whose file it is, and whether it is whole, is looked at as by a server that starts.
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
    throw new StartupError({ problem, remedy: 'Name a file in a folder that exists and that this user may write to.' })
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
    // VACUUM leaves this out.
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
