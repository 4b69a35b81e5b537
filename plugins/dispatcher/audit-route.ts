import type { AuditEntry } from '../../schemas/audit.js'
import type { AuditLog } from './audit.js'

/**
 * Writes the entry of a decision that a route took itself, without a tool call (design decision 25): /confirm, and what /setup
 * refuses. Resolves when it is in the log, and on the disk where there is one; rejects when it cannot be written.
 */
export type AuditRoute = (entry: AuditEntry) => Promise<void>

export const createRouteAudit =
  (audit: AuditLog | null): AuditRoute =>
  async (entry) => {
    audit?.write(entry)
    await audit?.sync()
  }
