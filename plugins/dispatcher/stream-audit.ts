import type { Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { AuditLog } from './audit.js'

/** Bytes that may wait for a slow reader before an entry counts as not written. */
const BACKLOG = 1024 * 1024
/** How long a change waits for the reader to take its entry. */
const PATIENCE_MS = 5000

/** Writes to a stream of the process, for a supervisor that collects standard output. */
export function createStreamAudit(stream: Writable): AuditLog {
  let failure: Error | null = null
  let handedOver = Promise.resolve()
  stream.on('error', (error) => (failure = error))
  return {
    write(entry) {
      if (failure !== null) throw failure
      if (stream.writableLength > BACKLOG) throw new Error('nobody reads the audit stream')
      handedOver = new Promise((resolve, reject) => {
        // A pipe that has lost its reader only says so here, after the write.
        stream.write(`${JSON.stringify(entry)}\n`, (error) => (error ? reject(error) : resolve()))
      })
      handedOver.catch((error: Error) => (failure = error))
    },
    sync: () =>
      Promise.race([
        handedOver,
        wait(PATIENCE_MS, undefined, { ref: false }).then(() => {
          throw new Error('nobody reads the audit stream')
        }),
      ]),
    check() {
      if (failure !== null) throw failure
      if (stream.writableLength > BACKLOG) throw new Error('nobody reads the audit stream')
    },
    reopen: () => undefined,
    close: () => undefined,
  }
}
