import fs from 'node:fs'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { visibleJson } from '../../domain/text/escape-text.js'
import type { AuditEntry } from '../../schemas/audit.js'

/** The destination of audit entries. If an entry cannot be written, the dispatcher decides what to do. */
export interface AuditLog {
  /** Writes an audit entry at once; throws if that fails. */
  write(entry: AuditEntry): void
  /**
   * Writes an entry at the end of the current turn of the event loop, together with all other entries of this turn.
   * Resolves when the operating system has the entry; rejects if any of these entries cannot be written.
   */
  writeInTurn(entry: AuditEntry): Promise<void>
  /**
   * Writes, at once, all entries that wait for the end of the event loop's current turn, because the process is about
   * to exit. Never throws.
   */
  flush(): void
  /**
   * Resolves when all entries so far have reached the destination and, if it is a file, are on the disk. Rejects if
   * that fails.
   */
  sync(): Promise<void>
  /**
   * Checks that the next entry can be written and synced; otherwise, throws or rejects. After an earlier failure, the
   * log tries to write again and records in the file that entries may be missing.
   */
  check(): void | Promise<void>
  /**
   * Opens the file anew after a rotation. If the new file cannot be opened, throws, and the log continues with the old
   * file. If the entries in the old file cannot be synced, throws too, but the log continues with the new file.
   */
  reopen(): void
  close(): void
}

/** The file operations that an audit log needs. */
export interface Disk extends Pick<
  typeof fs,
  'accessSync' | 'closeSync' | 'fdatasyncSync' | 'fstatSync' | 'openSync' | 'readSync' | 'statfsSync' | 'statSync'
> {
  fdatasync(fd: number, done: fs.NoParamCallback): void
  writeSync(fd: number, bytes: Buffer, offset: number): number
}

const NEWLINE = 0x0a
/** Minimum number of free bytes on the disk of the audit log, enough for about a hundred entries. */
const LEAST_ROOM = 64 * 1024

/**
 * Creates a log that appends to a file, which only its owner can read. Entries reach the operating system before the
 * tool runs. All entries of one turn of the event loop are written synchronously in one write (D217). To a pipe, each
 * entry is written separately, because only short writes arrive undivided. Throws if the file cannot be opened. After a
 * failure, as soon as the log can write again (and sync, if syncing had failed), it first writes a line that says since
 * when entries may be missing.
 *
 * Every call of `check`, and the first entry of every turn of the event loop, uses one stat call to see whether the
 * open file is still the file at its path. If the file was moved or deleted, a new file takes its place (D81).
 *
 * @param noticed is called when the file has been replaced.
 * @param replica names the process in every line.
 */
export function createFileAudit(
  path: string,
  disk: Disk = fs,
  noticed: (what: 'moved' | 'deleted') => void = () => {},
  replica?: string,
): AuditLog {
  const textOf = linesOf(replica)
  let file = openLogFile(path, disk)
  let torn = endsInside(path, disk)
  let failedSince: string | null = null
  let isUnsynced = false
  let failedSyncs = 0
  let isFollowed = false
  let isClosed = false
  const endTurn = () => (isFollowed = false)
  const turn = createTurn(append)

  /** Appends lines to the file. `since` is the time of the first line, in milliseconds since the epoch. */
  function append(lines: string, since = Date.now()): void {
    // After the file was closed, its descriptor number may have been given to another file.
    if (isClosed) throw new Error('the audit log is closed')
    const problem = isFollowed ? null : follow()
    // If no new file can be opened, the old file is used as long as it still has a name: a moved file has one, a
    // deleted file does not. Entries in a deleted file would be lost.
    if (problem !== null && file.isDeleted()) throw failed(problem, since)
    if (failedSince !== null && !isUnsynced) appendGap(failedSince)
    appendLines(lines, since)
  }

  /**
   * Opens the file at `path`, or creates one there, if the file that is now open is no longer at `path`. Returns null
   * on success. Otherwise, returns the error of opening the new file or of syncing the old one.
   */
  function follow(): Error | null {
    if (!file.isRegular) return null
    try {
      if (file.isAt(path)) {
        noteFollowed()
        return null
      }
      const [isDeleted, since] = [file.isDeleted(), file.since]
      // The entries in a deleted file are lost, so the gap is recorded in the new file.
      if (isDeleted && (failedSince === null || since < failedSince)) failedSince = since
      moveOn()
      noticed(isDeleted ? 'deleted' : 'moved')
      return null
    } catch (error) {
      return error as Error
    }
  }

  /**
   * Notes that the file was checked in this turn of the event loop. Further writes in the same turn skip the check,
   * because a stat call costs as much as writing an entry (D81).
   */
  function noteFollowed(): void {
    if (isFollowed) return
    isFollowed = true
    setImmediate(endTurn)
  }

  function failed(error: Error, since?: number): Error {
    noteFailure(since)
    return error
  }

  function appendGap(since: string): void {
    appendLines(textOf({ ts: new Date().toISOString(), phase: 'gap', since }))
    failedSince = null
  }

  function appendLines(lines: string, since?: number): void {
    // If the disk was full, the last line may be cut off in the middle. The next entry then starts on a new line.
    const bytes = Buffer.from(torn ? `\n${lines}` : lines)
    let written = 0
    try {
      while (written < bytes.length) written += disk.writeSync(file.fd, bytes, written)
      torn = false
    } catch (error) {
      if (written > 0) torn = bytes[written - 1] !== NEWLINE
      noteFailure(since)
      throw error
    }
  }

  function noteFailure(since = Date.now()): void {
    failedSince ??= new Date(since).toISOString()
  }

  function noteFailedSync(): void {
    noteFailure()
    isUnsynced = true
    failedSyncs += 1
  }

  async function sync(): Promise<void> {
    turn.flush()
    const before = failedSyncs
    let isLost: boolean
    try {
      isLost = await file.sync()
    } catch (error) {
      noteFailedSync()
      throw error
    }
    if (isLost) throw failed(new Error('the file of the audit log was deleted'))
    // If several syncs run at the same time, the operating system reports lost data to only one of them. If one fails,
    // all of them are therefore treated as failed.
    if (failedSyncs !== before) throw new Error('another sync of the audit log has failed in the meantime')
    isUnsynced = false
  }

  /** Switches to the file that is now at the path, or creates one there. */
  function moveOn(): void {
    const old = file
    const next = openLogFile(path, disk)
    try {
      torn = endsInside(path, disk)
    } catch (error) {
      next.retire()
      throw error
    }
    file = next
    try {
      // The old file is synced now. Later calls of `sync` sync only the new file, although their callers also rely on
      // the entries in the old one.
      old.syncNow()
    } catch (cause) {
      // If this sync fails, the log still switches to the new file. Otherwise, it could never get away from a broken
      // disk.
      noteFailedSync()
      throw new Error('The new file is in use; entries of the old one may not be on the disk.', { cause })
    } finally {
      old.retire()
    }
  }

  return {
    write(entry) {
      turn.flush()
      append(textOf(entry))
    },
    async writeInTurn(entry) {
      if (file.isRegular) await turn.add(textOf(entry))
      else append(textOf(entry))
    },
    flush: turn.flush,
    sync,
    async check() {
      const problem = follow()
      if (problem !== null) throw problem
      if (isUnsynced) await sync()
      if (failedSince !== null) appendGap(failedSince)
      // Free space is not checked for pipes and devices, because they need none.
      if (!file.isRegular) return
      disk.accessSync(path, fs.constants.W_OK)
      const { bavail, bsize } = disk.statfsSync(dirname(path))
      if (bavail * bsize < LEAST_ROOM) throw new Error('no space is left for the audit log')
    },
    reopen() {
      turn.flush()
      moveOn()
    },
    close() {
      turn.flush()
      isClosed = true
      file.retire()
    },
  }
}

/**
 * Formats entries as JSON, with `replica` as their last field. The field is added to the finished JSON, because copying
 * each entry to add it would cost more than formatting the entry.
 */
function linesOf(replica: string | undefined): (entry: object) => string {
  if (replica === undefined) return (entry) => `${visibleJson(entry)}\n`
  const end = `,"replica":${JSON.stringify(replica)}}\n`
  return (entry) => `${visibleJson(entry).slice(0, -1)}${end}`
}

/** Collects the lines that are logged in one turn of the event loop, and passes them on at its end. */
function createTurn(write: (lines: string, since: number) => void) {
  let lines = ''
  let since = 0
  let written = Promise.resolve()
  let settle: { resolve(): void; reject(error: unknown): void } | null = null

  function flush(): void {
    if (settle === null) return
    const [all, settled] = [lines, settle]
    lines = ''
    settle = null
    try {
      write(all, since)
      settled.resolve()
    } catch (error) {
      settled.reject(error)
    }
  }

  return {
    flush,
    add(line: string): Promise<void> {
      if (settle === null) {
        written = new Promise((resolve, reject) => (settle = { resolve, reject }))
        since = Date.now()
        setImmediate(flush)
      }
      lines += line
      return written
    },
  }
}

/** Checks that the file could be opened or created, without doing so. Otherwise, throws the error of node:fs. */
export function checkAuditPath(path: string): void {
  const there = fs.statSync(path, { throwIfNoEntry: false })
  if (there?.isDirectory() === true) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  if (there === undefined) fs.accessSync(dirname(path), fs.constants.W_OK | fs.constants.X_OK)
  else fs.accessSync(path, fs.constants.W_OK)
}

/**
 * Returns true if the last line of the file is incomplete, because the disk was full or the process ended while
 * writing.
 */
function endsInside(path: string, disk: Disk): boolean {
  const file = disk.statSync(path)
  if (!file.isFile() || file.size === 0) return false
  let fd: number
  try {
    fd = disk.openSync(path, 'r')
  } catch {
    // A write-only file cannot be read. Its last line is then assumed to be incomplete, because an additional empty
    // line between two entries does no harm.
    return true
  }
  try {
    const last = Buffer.alloc(1)
    disk.readSync(fd, last, 0, 1, file.size - 1)
    return last[0] !== NEWLINE
  } finally {
    disk.closeSync(fd)
  }
}

/** The file of the audit log, open for appending. */
interface LogFile {
  readonly fd: number
  /** True for a regular file; false for a pipe or a device, which is never rotated. */
  readonly isRegular: boolean
  /** The earliest time at which the file's first entry can have been written. */
  readonly since: string
  /** Returns true if the open file is still the file at the path. Throws if this cannot be determined. */
  readonly isAt: (path: string) => boolean
  /** Returns true if the file no longer has a name, so that everything written to it is lost. */
  readonly isDeleted: () => boolean
  /**
   * Resolves when everything written so far is on the disk. For a pipe or a device, which cannot be synced, it resolves
   * at once. The result is true if the file has been deleted, so that its entries are lost.
   */
  sync(): Promise<boolean>
  /** Does the same as `sync`, but blocks until it is done. */
  syncNow(): void
  /**
   * Closes the file as soon as no sync of it is running. If it were closed earlier, the sync could hit another file
   * that has been given the same descriptor number.
   */
  retire(): void
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = fs.constants

/**
 * Opens the file; if there is none, creates one that only its owner can read. Throws if the file cannot be opened; if
 * it is a pipe that has no reader, the error code is ENXIO. If the reader of a pipe is too slow and the pipe is full,
 * writes fail with EAGAIN.
 */
function openLogFile(path: string, disk: Disk): LogFile {
  const syncData = promisify((fd: number, done: fs.NoParamCallback) => disk.fdatasync(fd, done))
  // The file is opened in non-blocking mode. Otherwise, opening a pipe without a reader or writing to it would block
  // the whole process. Regular files never block in this way.
  const fd = disk.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600)
  const own = disk.fstatSync(fd, { bigint: true })
  const isRegular = own.isFile()
  const isDeleted = () => isRegular && disk.fstatSync(fd).nlink === 0
  let syncs = 0
  let isRetired = false
  const closeWhenDone = () => {
    if (isRetired && syncs === 0) disk.closeSync(fd)
  }
  return {
    fd,
    isRegular,
    // Some file systems do not record the time at which a file was created.
    since: new Date(own.birthtimeMs > 0n ? Math.min(Number(own.birthtimeMs), Date.now()) : Date.now()).toISOString(),
    isAt(path) {
      const there = disk.statSync(path, { bigint: true, throwIfNoEntry: false })
      return there?.ino === own.ino && there.dev === own.dev
    },
    isDeleted,
    async sync() {
      syncs += 1
      try {
        await syncData(fd).catch(ignoreUnsyncable)
        return isDeleted()
      } finally {
        syncs -= 1
        closeWhenDone()
      }
    },
    syncNow() {
      try {
        disk.fdatasyncSync(fd)
      } catch (error) {
        ignoreUnsyncable(error)
      }
    },
    retire() {
      isRetired = true
      closeWhenDone()
    },
  }
}

function ignoreUnsyncable(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
}

/** Maximum number of bytes that may wait for a slow reader. Beyond it, further entries count as not written. */
const BACKLOG = 1024 * 1024
/** Maximum time, in milliseconds, for which a change waits until the reader has taken its audit entry. */
const PATIENCE_MS = 5000

/**
 * Creates a log that writes to a stream of the process, such as the standard output, which a supervisor collects.
 * `replica` becomes a field of every entry.
 */
export function createStreamAudit(stream: Writable, replica?: string): AuditLog {
  const textOf = linesOf(replica)
  let failure: Error | null = null
  let handedOver = Promise.resolve()
  const turn = createTurn(hand)
  stream.on('error', (error) => (failure = error))

  function check(): void {
    if (failure !== null) throw failure
    if (stream.writableLength > BACKLOG) throw new Error('the audit stream has no reader')
  }

  function hand(lines: string): void {
    check()
    handedOver = new Promise((resolve, reject) => {
      // If the stream is a pipe without a reader, the error arrives only in this callback, after the write.
      stream.write(lines, (error) => (error ? reject(error) : resolve()))
    })
    handedOver.catch((error: Error) => (failure = error))
  }

  return {
    write(entry) {
      turn.flush()
      hand(textOf(entry))
    },
    writeInTurn: async (entry) => turn.add(textOf(entry)),
    flush: turn.flush,
    sync() {
      turn.flush()
      return Promise.race([
        handedOver,
        wait(PATIENCE_MS, undefined, { ref: false }).then(() => {
          throw new Error('the audit stream has no reader')
        }),
      ])
    },
    check,
    reopen: () => undefined,
    close: turn.flush,
  }
}
