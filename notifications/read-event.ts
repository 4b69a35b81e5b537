import { escapeText } from '../domain/text/escape-text.js'
import type { AuditEntry } from '../schemas/audit.js'
import type { ErrorCode } from '../schemas/errors.js'
import type { Owner } from '../schemas/caller.js'

/** An event about which a receiver is told, as the payload of Standard Webhooks: a type, a time and facts. */
export interface NotifiedEvent {
  /** The name of the event, such as `approval.waiting`. Names are added, and never change their meaning. */
  type: string
  /** The time of the event, as RFC 3339 in UTC. */
  timestamp: string
  data: EventFacts
}

/** The facts of an event. They contain neither arguments nor secrets of any call. */
export interface EventFacts {
  /** One sentence for people. */
  text: string
  /** The public URL of this server. */
  server: string
  /** The process that saw the event. */
  replica: string
  tool?: string
  /** The error code with which the call was refused. */
  reason?: string
  /** The person who caused the event, or whom it concerns. */
  person?: Owner
  /** The person who made the call, if somebody else decided about it. */
  asked_by?: Owner
  approved_by?: Owner
  approval_id?: string
  /** The page on which people decide, after a login. */
  approval_url?: string
  expires_at?: string
  /** What the call would do; only if names of objects are asked for. */
  summary?: string
  /** The note on a decision, and what a refusal is about; only if names of objects are asked for. */
  note?: string
  outside?: AuditEntry['outside']
  guardrail?: AuditEntry['guardrail']
  scopes?: readonly string[]
  /** The svc-mcp-http command that caused the event, whether it succeeded, and who ran it. */
  command?: string
  outcome?: string
  os_user?: string
  /** What of the audit log failed. */
  operation?: string
  /** Number of further equal events since the last message about one. */
  repeated?: number
  request_id?: string
  pce_host?: string
}

/** What the facts of every event come from, beside its audit entry. */
export interface Teller {
  publicUrl: string
  replica: string
  /** True if names and hrefs of objects, and notes of people, may be told. */
  names: boolean
}

/** The names of events about approvals that are not those of the audit log. */
const APPROVALS: Readonly<Record<string, string>> = { asked: 'waiting', approved: 'given' }
/** The events about approvals of which nobody is told, because nothing has changed. */
const UNTOLD: ReadonlySet<string> = new Set(['shown'])
/** The error codes with which a call is refused by a limit that the operator has set. */
const LIMITS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['out_of_scope', 'protected', 'frozen', 'too_many_workloads'])
/** The names of events by the command that causes them. */
const COMMANDS: Readonly<Record<string, string>> = {
  'revoke-user': 'person.revoked',
  'forget-user': 'person.forgotten',
}

/**
 * Returns the event that an audit entry is about: something has become of an approval, a limit has refused a call, or
 * access was revoked by a command. Returns null for any other entry.
 */
export function readEvent(entry: AuditEntry, teller: Teller): NotifiedEvent | null {
  const type = typeOf(entry)
  return type === null ? null : { type, timestamp: entry.ts, data: factsOf(type, entry, teller) }
}

function typeOf({ phase, approval, reason, command }: AuditEntry): string | null {
  if (command !== undefined) return phase === 'outcome' ? (COMMANDS[command] ?? null) : null
  if (reason !== undefined && LIMITS.has(reason)) return `refused.${reason}`
  // The outcome of a call repeats the facts of its decision.
  if (approval === undefined || phase !== 'decision' || UNTOLD.has(approval)) return null
  return `approval.${APPROVALS[approval] ?? approval}`
}

function factsOf(type: string, entry: AuditEntry, { publicUrl, replica, names }: Teller): EventFacts {
  const { iss, sub, approval_id: id, command } = entry
  return {
    text: sentenceOf(type, entry),
    server: publicUrl,
    replica,
    tool: entry.tool,
    reason: entry.reason,
    ...(iss !== null && sub !== null && { person: personOf({ iss, sub }) }),
    ...(entry.asked_by && { asked_by: personOf(entry.asked_by) }),
    ...(entry.approved_by && { approved_by: personOf(entry.approved_by) }),
    ...(id !== undefined && { approval_id: id, approval_url: `${publicUrl}/approve/${id}` }),
    ...(names && {
      note: entry.note,
      outside: entry.outside,
      guardrail: entry.guardrail,
      scopes: entry.scopes?.slice(0, MOST_SCOPES),
    }),
    ...(command !== undefined && { command, outcome: entry.outcome, os_user: entry.os_user }),
    request_id: clip(entry.request_id),
    pce_host: entry.pce_host,
  }
}

const MOST_SCOPES = 20
/** Maximum number of characters of an identifier, so that every message is small. */
const LONGEST = 300

const clip = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)
const personOf = ({ iss, sub }: Owner): Owner => ({ iss: clip(iss), sub: clip(sub) })
const said = (sub: string | null | undefined): string => escapeText(clip(sub ?? 'nobody known'))

/** Says an event in one sentence. It names people and tools, but no object of the PCE. */
function sentenceOf(type: string, { tool = 'a call', sub, asked_by: asker, approved_by: by, ...entry }: AuditEntry) {
  const call = `${escapeText(tool)} of ${said(asker?.sub ?? sub)}`
  switch (type) {
    case 'approval.waiting':
      return `${call} waits for approval.`
    case 'approval.given':
      return `${said(sub)} approved ${call}.`
    case 'approval.denied':
      return `${said(sub)} denied ${call}.`
    case 'approval.used':
      return `${call} runs, approved by ${said(by?.sub)}.`
    case 'approval.expired':
      return `The approval of ${call} expired.`
    case 'approval.void':
      return `The approval of ${call} is void: the call would now do something else, or who approved it no longer may.`
    case 'approval.lost':
      return `The decision of ${said(sub)} about ${call} came after another one, which stands.`
    case 'person.revoked':
    case 'person.forgotten':
      return `${escapeText(entry.os_user ?? 'somebody')} ran ${entry.command} for ${said(sub)}: ${entry.outcome}.`
    default:
      return type.startsWith('refused.')
        ? `${call} was refused: ${entry.reason}.`
        : `${call}: ${type.replace('.', ' ')}.`
  }
}
