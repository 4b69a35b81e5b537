import type { AuditLog } from '../plugins/dispatcher/audit.js'
import type { ServiceLog } from '../plugins/dispatcher/record-call.js'

/** SIGHUP is how log rotation says that the file has been moved away. Where no new one can be opened, the old one stays in use. */
export function reopenOnHangup(audit: AuditLog | null, log: ServiceLog): void {
  process.on('SIGHUP', () => {
    try {
      audit?.reopen()
    } catch (err) {
      log.error(
        { err },
        'opening the audit log anew failed; unless the error says otherwise, the old file stays in use',
      )
    }
  })
}
