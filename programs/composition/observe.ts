import type { AuditLog } from '../../plugins/dispatcher/audit-log.js'
import type { CurrentCall } from '../../plugins/context/connect-pce.js'
import { replicaOf } from '../process/name-replica.js'
import { readPackage } from '../process/read-package.js'
import type { Config } from '../../schemas/config.js'
import type { Meter } from '../../schemas/metrics.js'
import type { Tracing } from '../../schemas/tracing.js'

/** Returns the identity of this process in metrics and traces. */
export function nameServer(config: Pick<Config, 'replicaId'>): { name: string; version: string; replica: string } {
  const { name, version } = readPackage()
  return { name, version, replica: replicaOf(config) }
}

/** The meter and the tracing of the server. Each is undefined if it is switched off. */
export interface Observers {
  meter?: Meter
  tracing?: Tracing
}

/**
 * Creates the observer that measures and traces requests to PCEs; returns undefined if metrics and tracing are both
 * off.
 */
export function observeRequests({ meter, tracing }: Observers): CurrentCall['onRequest'] {
  if (meter === undefined && tracing === undefined) return undefined
  return ({ method, operation }) => {
    const started = performance.now()
    const sent = tracing?.send(method, operation)
    return {
      ...(sent && { headers: sent.headers }),
      ended({ status, failure, retries, waitedMs }) {
        sent?.end(status, failure)
        const seconds = (performance.now() - started) / 1000
        meter?.pceRequest({ operation, status, failure, retries, waitedSeconds: waitedMs / 1000, seconds })
      },
    }
  }
}

/** Wraps the audit log so that failed writes are counted. */
export function observeAudit(audit: AuditLog, { meter }: Observers): AuditLog {
  if (meter === undefined) return audit
  return {
    ...audit,
    write(entry) {
      try {
        audit.write(entry)
      } catch (error) {
        meter.auditFailed('write')
        throw error
      }
    },
    async writeInTurn(entry) {
      try {
        await audit.writeInTurn(entry)
      } catch (error) {
        meter.auditFailed('write')
        throw error
      }
    },
    async sync() {
      try {
        await audit.sync()
      } catch (error) {
        meter.auditFailed('sync')
        throw error
      }
    },
    async check() {
      try {
        await audit.check()
      } catch (error) {
        meter.auditFailed('check')
        throw error
      }
    },
  }
}
