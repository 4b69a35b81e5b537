import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { Dispatcher } from '../../plugins/dispatcher/dispatch.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'

/**
 * Waits up to `finish` for running calls to end by themselves, then aborts the others, and after `lastWords` gives up
 * waiting for any that still run. In this way, every call has an answer and an audited outcome before the process ends.
 * Resolves with true if all calls ended by themselves. Times are in milliseconds.
 */
export async function endCalls(
  dispatcher: Dispatcher,
  { finish, lastWords }: { finish: number; lastWords: number },
): Promise<boolean> {
  const isIdle = () => dispatcher.idle().then(() => true)
  if (await Promise.race([isIdle(), wait(finish, false)])) return true
  dispatcher.abortAll()
  await Promise.race([isIdle(), wait(lastWords)])
  dispatcher.abandonAll()
  // Audit entries are written at the end of each turn of the event loop: first the decisions of calls that were just
  // allowed, then all outcomes. The answers are sent after that. This takes three turns in total.
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  return false
}

/**
 * Reopens the audit log on SIGHUP, which a log rotation sends after it has moved the file away. If no new file can be
 * opened, the log continues with the old one.
 */
export function reopenOnHangup(audit: AuditLog | null, log: ServerLog): void {
  process.on('SIGHUP', () => {
    try {
      audit?.reopen()
    } catch (err) {
      log.error({ err }, 'reopening the audit log failed; unless the error says otherwise, the old file stays in use')
    }
  })
}

/** Writes pending audit entries even if a second signal or a second error forces the process to exit. */
export function flushOnExit(audit: AuditLog | null): void {
  process.on('exit', () => audit?.flush())
}
