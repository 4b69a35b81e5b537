import { randomUUID } from 'node:crypto'
import type { AuditEntry, AuditFacts } from '../../schemas/audit.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { MeasuredCall, Meter } from '../../schemas/metrics.js'
import type { ToolFacts } from '../../tools/listed-tool.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, ServerLog, ToolCall } from './call.js'
import { MOST_UPSTREAM_IDS } from './run-handler.js'

/** Records one call: in its audit entries, in the server log, and in the metrics. */
export interface CallRecord {
  /**
   * Writes the audit entry that says whether the call may run. Resolves when the entry is written, and rejects if it
   * cannot be written.
   */
  decide(decision: NonNullable<AuditEntry['decision']>, reason?: ErrorCode): Promise<void>
  /** Writes the audit entry of the outcome. Resolves when the entry is written, and rejects if it cannot be written. */
  conclude(reason: ErrorCode | null, clientGone: boolean): Promise<void>
  /** Records the end of the call in the server log and in the metrics. */
  log(outcome: MeasuredCall['outcome'], gate: string, reason: ErrorCode | null): void
  /** Adds facts to the audit entries that have not been written yet. */
  readonly note: (facts: AuditFacts) => void
}

const LONGEST_NAME = 128
const DONE = Promise.resolve()

/**
 * Creates the record of a call. The two audit entries of the call have the same `call_id`. The request id cannot link
 * them, because clients choose request ids themselves, and all calls of a batch have the same one.
 */
export function recordCall(
  call: ToolCall,
  callerContext: CallerContext,
  tool: ToolFacts | undefined,
  ports: { audit: AuditLog | null; log: ServerLog; now: () => number; meter?: Meter },
): CallRecord {
  const started = performance.now()
  const milliseconds = () => Math.round((performance.now() - started) * 1000) / 1000
  const name = call.name.slice(0, LONGEST_NAME)
  const { role, iss, sub, mode } = callerContext.caller
  const { transport, client, clientAddress, pce } = callerContext
  const callId = randomUUID()
  const route = transport === 'http' ? (call.route ?? '/mcp') : undefined
  const clientName = client === undefined ? undefined : cleanClient(client)
  const pceHost = tool?.requiresPce === true ? pce?.origin.replace(/^\w+:\/\//, '') : undefined
  let noted: AuditFacts | null = null
  const time = () => new Date(ports.now()).toISOString()
  // Builds an entry; JSON leaves its undefined fields out. Spreads are avoided, because entries are built for every
  // call, and combining objects would cost as much as writing the entry.
  const entry = (
    phase: AuditEntry['phase'],
    decision: AuditEntry['decision'],
    outcome: AuditEntry['outcome'],
    reason: ErrorCode | undefined,
  ): AuditEntry => ({
    ts: time(),
    phase,
    decision,
    outcome,
    reason,
    tool: name,
    role,
    iss,
    sub,
    request_id: call.requestId,
    call_id: callId,
    mode,
    transport,
    route,
    client: clientName,
    client_address: clientAddress,
    pce_host: pceHost,
  })
  return {
    decide(decision, reason) {
      if (ports.audit === null) return DONE
      const facts = entry('decision', decision, undefined, reason)
      return ports.audit.writeInTurn(noted === null ? facts : { ...facts, ...noted })
    },
    conclude(reason, clientGone) {
      if (ports.audit === null) return DONE
      const facts = entry('outcome', undefined, reason === null ? 'success' : 'error', reason ?? undefined)
      const all = noted === null ? facts : { ...facts, ...noted }
      all.duration_ms = milliseconds()
      if (clientGone) all.client_gone = true
      return ports.audit.writeInTurn(all)
    },
    note({ upstream_request_ids: ids, ...facts }) {
      // New ids are added to the earlier ones, because both the preview and the tool itself may send requests to the
      // PCE for the same call.
      const all = [...new Set([...(noted?.upstream_request_ids ?? []), ...(ids ?? [])])].slice(0, MOST_UPSTREAM_IDS)
      noted = { ...noted, ...facts, ...(all.length > 0 && { upstream_request_ids: all }) }
    },
    log(outcome, gate, reason) {
      const facts = {
        request_id: call.requestId,
        sub,
        tool: name,
        gate,
        outcome,
        ...(reason && { error: reason }),
        ms: milliseconds(),
      }
      ports.meter?.toolCall({ tool: tool?.name, outcome, gate, code: reason, seconds: facts.ms / 1000 })
      ports.log[reason === null ? 'info' : ERROR_TABLE[reason].level](facts, 'tool call')
    },
  }
}

/**
 * A function that writes the audit entry of a decision that a route made without a tool call (D25): every decision of
 * /confirm and /approve, and the refusals of /setup. It resolves when the entry is in the log and, if the log is a
 * file, on the disk; it rejects if the entry cannot be written.
 *
 * Refusals of unknown senders, and refusals because of too many requests, are left out. They are only in the request
 * log, because anyone, or anyone with an access token, could otherwise fill the disk of the audit log.
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

const LONGEST = 128

/** Shortens a client's name for the audit log and puts it on one line. */
function cleanClient(client: string): string {
  const short = client.slice(0, LONGEST)
  return (PLAIN.test(short) ? short : short.replace(/\p{C}+/gu, ' ')).trim()
}

/** Matches names that need no cleaning, which are nearly all names. */
const PLAIN = /^[\x20-\x7E]*$/
