import { randomUUID } from 'node:crypto'
import type { AuditEntry, AuditFacts } from '../../schemas/audit.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { MeasuredCall, Meter } from '../../schemas/metrics.js'
import type { AnyTool } from '../../tools/define.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, ServerLog, ToolCall } from './call.js'
import { MOST_UPSTREAM_IDS } from './run-handler.js'

/** What is written about one call: its audit entries and its one line in the server log. */
export interface CallRecord {
  /** Resolves when the entry is written, and rejects when it cannot be. */
  decide(decision: NonNullable<AuditEntry['decision']>, reason?: ErrorCode): Promise<void>
  /** Resolves when the entry is written, and rejects when it cannot be. */
  conclude(reason: ErrorCode | null, clientGone: boolean): Promise<void>
  /** Its end, for the server log and the metrics. */
  log(outcome: MeasuredCall['outcome'], gate: string, reason: ErrorCode | null): void
  /** Adds to the entries that are still to be written. */
  readonly note: (facts: AuditFacts) => void
}

const LONGEST_NAME = 128
const DONE = Promise.resolve()

/** Joins both entries of a call by a `call_id`: a request id is the client's to choose and a batch shares one. */
export function recordCall(
  call: ToolCall,
  callerContext: CallerContext,
  tool: AnyTool | undefined,
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
  // What is undefined is not written. Written out, and without spreads: these are made for every call, and an object that is put together
  // from others costs as much as writing it.
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
      // A preview and its tool ask the PCE one after the other, for the same call.
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
 * Writes the entry of a decision that a route took itself, without a tool call (D25): /confirm, and what /setup refuses. Resolves
 * when it is in the log, and on the disk where there is one; rejects when it cannot be written.
 *
 * Refusals of unknown senders, and those for too many requests, are left out: otherwise anyone, or anyone with an access token,
 * could fill the audit log's disk. They are in the request log.
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

/** What a client calls itself, for the audit log: always short and on one line. */
function cleanClient(client: string): string {
  const short = client.slice(0, LONGEST)
  return (PLAIN.test(short) ? short : short.replace(/\p{C}+/gu, ' ')).trim()
}

/** Nearly all are. */
const PLAIN = /^[\x20-\x7E]*$/
