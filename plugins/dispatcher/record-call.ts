import { randomUUID } from 'node:crypto'
import type { AuditEntry, AuditFacts } from '../../schemas/audit.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { AuditLog } from './audit.js'
import { cleanClient } from './clean-client.js'
import { MOST_UPSTREAM_IDS } from './call-scope.js'
import type { Session, ToolCall } from './session.js'

/** The part of the service log that the dispatcher writes to. */
export interface ServiceLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** What is written about one call: its audit entries and its one line in the service log. */
export interface CallRecord {
  /** Throws when the entry cannot be written. */
  decide(decision: NonNullable<AuditEntry['decision']>, reason?: ErrorCode): void
  /** Throws when the entry cannot be written. */
  conclude(reason: ErrorCode | null, clientGone: boolean): void
  log(outcome: string, gate: string, reason: ErrorCode | null): void
  /** Adds to the entries that are still to be written. */
  readonly note: (facts: AuditFacts) => void
}

const LONGEST_NAME = 128

/** Joins both entries of a call by a `call_id`: a request id is the client's to choose and a batch shares one. */
export function recordCall(
  call: ToolCall,
  session: Session,
  tool: AnyTool | undefined,
  ports: { audit: AuditLog | null; log: ServiceLog; now: () => number },
): CallRecord {
  const started = performance.now()
  const milliseconds = () => Math.round((performance.now() - started) * 1000) / 1000
  const name = call.name.slice(0, LONGEST_NAME)
  const { role, iss, sub, mode } = session.caller
  const common = {
    tool: name,
    role,
    iss,
    sub,
    request_id: call.requestId,
    call_id: randomUUID(),
    mode,
    transport: session.transport,
    ...(session.transport === 'http' && { route: call.route ?? '/mcp' }),
    ...(session.client !== undefined && { client: cleanClient(session.client) }),
    ...(tool?.requiresPce === true &&
      session.pce !== null && { pce_host: session.pce.origin.replace(/^\w+:\/\//, '') }),
  }
  let noted: AuditFacts = {}
  const time = () => new Date(ports.now()).toISOString()
  return {
    decide(decision, reason) {
      ports.audit?.write({ ts: time(), phase: 'decision', decision, ...(reason && { reason }), ...common, ...noted })
    },
    conclude(reason, clientGone) {
      ports.audit?.write({
        ts: time(),
        phase: 'outcome',
        outcome: reason === null ? 'success' : 'error',
        ...(reason !== null && { reason }),
        ...common,
        ...noted,
        duration_ms: milliseconds(),
        ...(clientGone && { client_gone: true }),
      })
    },
    note({ upstream_request_ids: ids, ...facts }) {
      // A preview and its tool ask the PCE one after the other, for the same call.
      const all = [...new Set([...(noted.upstream_request_ids ?? []), ...(ids ?? [])])].slice(0, MOST_UPSTREAM_IDS)
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
      ports.log[reason === null ? 'info' : ERROR_TABLE[reason].level](facts, 'tool call')
    },
  }
}
