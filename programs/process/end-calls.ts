import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { Dispatcher } from '../../plugins/dispatcher/dispatch.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'

/**
 * Lets running calls finish, then aborts them, then writes off what still runs, so that every call has been answered and has an
 * outcome in the audit log before the process ends. Resolves with whether all calls finished by themselves. Times in
 * milliseconds.
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
  // At the end of each turn what is to be audited is written: the decisions of calls that have just been allowed, their outcomes with those of
  // the others. The answers follow.
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  return false
}

/** SIGHUP is how log rotation says that the file has been moved away. Where no new one can be opened, the old one stays in use. */
export function reopenOnHangup(audit: AuditLog | null, log: ServerLog): void {
  process.on('SIGHUP', () => {
    try {
      audit?.reopen()
    } catch (err) {
      log.error({ err }, 'reopening the audit log failed; unless the error says otherwise, the old file stays in use')
    }
  })
}

/** A process that is made to end, by a second signal or a second error, waits for nothing; what has been decided is written all the same. */
export function flushOnExit(audit: AuditLog | null): void {
  process.on('exit', () => audit?.flush())
}
