import type { AuditEntry } from '../../schemas/audit.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { AuditLog } from './audit.js'
import { cleanClient } from './clean-client.js'

/**
 * Writes the entry of a decision that a route took itself, without a tool call (D25): /confirm, and what /setup refuses. Resolves
 * when it is in the log, and on the disk where there is one; rejects when it cannot be written.
 *
 * Left out are refusals of whoever is not known, and those for being too many: an entry for each would let anybody, or anybody with one
 * access token, fill the disk of the audit log. They stand in the request log.
 */
export type AuditRoute = (entry: AuditEntry) => Promise<void>

const TOO_MANY: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['rate_limited', 'overloaded'])

export const createRouteAudit =
  (audit: AuditLog | null): AuditRoute =>
  async (entry) => {
    const { decision, reason, sub, client } = entry
    const isRefused = decision !== 'allowed'
    if (isRefused && (sub === null || (reason !== undefined && TOO_MANY.has(reason)))) return
    audit?.write({ ...entry, ...(client !== undefined && { client: cleanClient(client) }) })
    await audit?.sync()
  }
