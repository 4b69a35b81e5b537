import type { EventRecorder } from '../../notifications/record-events.js'
import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { AuditEntry } from '../../schemas/audit.js'

/**
 * Wraps the audit log, so that the event recorder sees every entry that was written and every failure of the log. Audit
 * entries are the only source of notifications: whichever part of the server writes an entry about a known event, the
 * receiver is told.
 */
export function tellOfAudit<A extends AuditLog | null>(
  audit: A,
  recorder: Pick<EventRecorder, 'note' | 'noteAuditFailure'>,
): A {
  if (audit === null) return audit
  const failed = (operation: string, error: unknown): never => {
    recorder.noteAuditFailure(operation)
    throw error
  }
  return {
    ...audit,
    write(entry: AuditEntry) {
      try {
        audit.write(entry)
      } catch (error) {
        failed('write', error)
      }
      recorder.note(entry)
    },
    async writeInTurn(entry: AuditEntry) {
      await audit.writeInTurn(entry).catch((error: unknown) => failed('write', error))
      recorder.note(entry)
    },
    sync: () => audit.sync().catch((error: unknown) => failed('sync', error)),
    async check() {
      try {
        await audit.check()
      } catch (error) {
        failed('check', error)
      }
    },
  }
}
