import { closeSync, fstatSync, openSync, readSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Writable } from 'node:stream'
import type { AuditEntry } from '../../schemas/audit.js'
import { openLogFile } from './log-file.js'

/** Where audit entries go. The dispatcher decides what a failure means. */
export interface AuditLog {
  /** Throws when the entry cannot be written. */
  write(entry: AuditEntry): void
  /** Resolves when every entry written so far is out of our hands, and on the disk where there is one; else rejects. */
  sync(): Promise<void>
  /** For readiness: throws when the next entry could not be written. After a failure it tries, and notes the gap. */
  check(): void
  /** Opens the file anew after a rotation; keeps the old one and throws when that fails. */
  reopen(): void
  close(): void
}

/** Bytes that may wait for a slow reader of the stream before an entry counts as not written. */
const STREAM_BACKLOG = 1024 * 1024
/** How long a change waits for the reader of the stream to take its entry. */
const STREAM_PATIENCE_MS = 5000

/** Bytes that must be free on the disk of the audit log: room for some hundred entries. */
const LEAST_ROOM = 64 * 1024

/**
 * Appends to a file, created readable by its owner only. Every entry is one synchronous write, so that it is with the operating
 * system before the tool runs. Throws at once when the file cannot be opened.
 */
export function createFileAudit(path: string): AuditLog {
  let file = openLogFile(path)
  let torn = endsInside(path)
  let failedSince: string | null = null

  function append(entry: object): void {
    // A full disk may cut a line off in the middle; the next entry then starts on a line of its own.
    const line = Buffer.from(`${torn ? '\n' : ''}${JSON.stringify(entry)}\n`)
    let written = 0
    try {
      while (written < line.length) written += writeSync(file.fd, line, written)
      torn = false
      failedSince = null
    } catch (error) {
      torn ||= written > 0
      fail()
      throw error
    }
  }
  const fail = () => (failedSince ??= new Date().toISOString())

  return {
    write: append,
    async sync() {
      try {
        await file.sync()
      } catch (error) {
        fail()
        throw error
      }
    },
    check() {
      if (failedSince !== null) append({ ts: new Date().toISOString(), phase: 'gap', since: failedSince })
      // Pipes and devices have no room to run out of; the file itself may have been moved away for rotation.
      if (!fstatSync(file.fd).isFile()) return
      const { bavail, bsize } = statfsSync(dirname(path))
      if (bavail * bsize < LEAST_ROOM) throw new Error('no room is left for the audit log')
    },
    reopen() {
      const next = openLogFile(path)
      try {
        // Whoever asks for a sync later asks for the entries of the old file as well.
        file.syncNow()
        torn = endsInside(path)
      } catch (error) {
        next.retire()
        fail()
        throw error
      }
      file.retire()
      file = next
    },
    close: () => file.retire(),
  }
}

/** Whether the last line of the file was cut off: by a full disk, or by the end of the process that wrote it. */
function endsInside(path: string): boolean {
  const file = statSync(path)
  if (!file.isFile() || file.size === 0) return false
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    // A log may be for writing only; an empty line between two entries does no harm.
    return true
  }
  try {
    const last = Buffer.alloc(1)
    readSync(fd, last, 0, 1, file.size - 1)
    return last[0] !== 0x0a
  } finally {
    closeSync(fd)
  }
}

/** Writes to a stream of the process, for a supervisor that collects standard output. */
export function createStreamAudit(stream: Writable): AuditLog {
  let failure: Error | null = null
  let handedOver = Promise.resolve()
  stream.on('error', (error) => (failure = error))
  return {
    write(entry) {
      if (failure !== null) throw failure
      if (stream.writableLength > STREAM_BACKLOG) throw new Error('nobody reads the audit stream')
      handedOver = new Promise((resolve, reject) => {
        // A pipe that has lost its reader only says so here, after the write.
        stream.write(`${JSON.stringify(entry)}\n`, (error) => (error ? reject(error) : resolve()))
      })
      handedOver.catch((error: Error) => (failure = error))
    },
    sync: () =>
      Promise.race([
        handedOver,
        wait(STREAM_PATIENCE_MS, undefined, { ref: false }).then(() => {
          throw new Error('nobody reads the audit stream')
        }),
      ]),
    check() {
      if (failure !== null) throw failure
      if (stream.writableLength > STREAM_BACKLOG) throw new Error('nobody reads the audit stream')
    },
    reopen: () => undefined,
    close: () => undefined,
  }
}
