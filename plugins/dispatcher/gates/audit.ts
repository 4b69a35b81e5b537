import { ToolError } from '../../../schemas/errors.js'
import { ERROR_TABLE } from '../../errors/table.js'
import type { AuditLog } from '../audit.js'
import type { Gate } from './gate.js'

/**
 * Refuses what changes anything while its decision could not be written anyway (D25), with `audit_unavailable`. Stands before the
 * confirm gate, so that such a call spends no token. A log that fails only at the entry itself is noticed there.
 */
export const auditGate = (audit: AuditLog | null): Gate => ({
  name: 'audit',
  needs: 'call',
  check: ({ tool }) => (tool.effect === 'read' ? undefined : checkWritable(audit)),
})

async function checkWritable(audit: AuditLog | null): Promise<void> {
  try {
    await audit?.check()
  } catch (cause) {
    throw new ToolError('audit_unavailable', ERROR_TABLE.audit_unavailable.message, {}, { cause })
  }
}
