import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { AuditLog } from '../plugins/dispatcher/audit-log.js'
import type { Dispatcher } from '../plugins/dispatcher/dispatch.js'
import type { ServerLog } from '../plugins/dispatcher/call.js'

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
  // Their outcomes are written at the end of this turn, and their answers after that.
  await nextTurn()
  await nextTurn()
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
