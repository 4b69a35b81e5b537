import { closeSync, constants, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { promisify } from 'node:util'

/** A file that is open for appending. */
export interface LogFile {
  readonly fd: number
  /** Resolves when what was written so far is on the disk; at once for a pipe or a device, which have nothing to sync. */
  sync(): Promise<void>
  /** The same, before anything else happens. */
  syncNow(): void
  /** Closes it as soon as no sync of it runs: the number of a descriptor that is closed may be another file's a moment later. */
  retire(): void
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants
const syncData = promisify(fdatasync)

/**
 * Opens the file, or makes it, readable by its owner only. Throws where it cannot be opened: ENXIO for a pipe that nobody reads. A write
 * to a pipe whose reader does not keep up fails (EAGAIN) once the pipe is full.
 */
export function openLogFile(path: string): LogFile {
  // To open a pipe, or to write to it, stops the whole process until somebody reads it, unless it is asked not to. Files never wait so.
  const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600)
  let syncs = 0
  let isRetired = false
  const closeWhenDone = () => {
    if (isRetired && syncs === 0) closeSync(fd)
  }
  return {
    fd,
    async sync() {
      syncs += 1
      try {
        await syncData(fd)
      } catch (error) {
        ignoreUnsyncable(error)
      } finally {
        syncs -= 1
        closeWhenDone()
      }
    },
    syncNow() {
      try {
        fdatasyncSync(fd)
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
