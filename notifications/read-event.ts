import { clipText, escapeText, visibleJson } from '../domain/text/escape-text.js'
import type { AuditEntry } from '../schemas/audit.js'
import type { ErrorCode } from '../schemas/errors.js'
import type { Owner } from '../schemas/caller.js'

/**
 * An event about which the receiver of notifications is told, in the form of a Standard Webhooks payload: type, time
 * and facts.
 */
export interface NotifiedEvent {
  /**
   * The name of the event, such as `approval.waiting`. New names may be added, but the meaning of a name never changes.
   */
  type: string
  /** The time of the event, as RFC 3339 in UTC. */
  timestamp: string
  data: EventFacts
}

/** The facts of an event. They include neither the arguments of a call nor any secret. */
export interface EventFacts {
  /** A description of the event for people, in one sentence. */
  text: string
  /** The public URL of this server. */
  server: string
  /** The name of the server process that noticed the event. */
  replica: string
  tool?: string
  /** The error code with which the call was refused. */
  reason?: string
  /** The person who caused the event, or whom the event concerns. */
  person?: Owner
  /** The person who made the call, if the event is another person's decision about that call. */
  asked_by?: Owner
  approved_by?: Owner
  first_approved_by?: Owner
  /** The error codes of the guardrails that two persons override, in events about their approval. */
  overrides?: readonly string[]
  approval_id?: string
  /** The URL of the page on which people decide about the call, after a login. */
  approval_url?: string
  expires_at?: string
  /** What the call would do. Present only if notifications may name objects of the PCE. */
  summary?: string
  /**
   * The note on a decision; the fields below it say why a call was refused. All are present only if notifications may
   * name objects of the PCE.
   */
  note?: string
  outside?: AuditEntry['outside']
  guardrail?: AuditEntry['guardrail']
  scopes?: readonly string[]
  /** Number of values in the note and the fields below it that were left out to keep the message small. */
  names_left_out?: number
  /**
   * The svc-mcp-http command that caused the event; the fields below say whether the command succeeded, and who ran it.
   */
  command?: string
  outcome?: string
  os_user?: string
  /** The operation of the audit log that failed, such as `write`. */
  operation?: string
  /** Number of equal events that occurred after the previous message about such an event. */
  repeated?: number
  request_id?: string
  pce_host?: string
}

/** The facts about this server that go into every event, in addition to those of the audit entry. */
export interface Teller {
  publicUrl: string
  replica: string
  /** True if notifications may include names and hrefs of PCE objects, and the notes of people. */
  names: boolean
}

/** The names of events about approvals that are not those of the audit log. */
const APPROVALS: Readonly<Record<string, string>> = {
  asked: 'waiting',
  approved: 'given',
  approved_first: 'first_given',
}
/** The events about approvals that cause no notification, because nothing has changed. */
const UNTOLD: ReadonlySet<string> = new Set(['shown'])
/** The error codes with which a call is refused because it exceeds a limit that the operator has set. */
const LIMITS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['out_of_scope', 'protected', 'frozen', 'too_many_workloads'])
/** The event that each command causes, by the name of the command. */
const COMMANDS: Readonly<Record<string, string>> = {
  'revoke-user': 'person.revoked',
  'forget-user': 'person.forgotten',
}

/**
 * Returns the event that an audit entry describes: the state of an approval changed, a call exceeded a limit of the
 * operator, or a command revoked or removed a person's access or data. Returns null for any other entry.
 */
export function readEvent(entry: AuditEntry, teller: Teller): NotifiedEvent | null {
  const type = typeOf(entry)
  return type === null ? null : { type, timestamp: entry.ts, data: factsOf(type, entry, teller) }
}

function typeOf({ phase, approval, reason, command }: AuditEntry): string | null {
  if (command !== undefined) return phase === 'outcome' ? (COMMANDS[command] ?? null) : null
  if (reason !== undefined && LIMITS.has(reason)) return `refused.${reason}`
  // The outcome entry of a call repeats the facts of its decision entry, so it is not a new event.
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
    ...(entry.first_approved_by && { first_approved_by: personOf(entry.first_approved_by) }),
    ...(entry.overrides && { overrides: entry.overrides.map(({ guardrail }) => guardrail) }),
    ...(id !== undefined && { approval_id: id, approval_url: `${publicUrl}/approve/${id}` }),
    ...(names && fitNames(entry)),
    ...(command !== undefined && { command, outcome: entry.outcome, os_user: entry.os_user }),
    request_id: clip(entry.request_id),
    pce_host: entry.pce_host,
  }
}

/**
 * Maximum size in bytes, as JSON, of all values of a message that may contain object names. The summary is not
 * included.
 */
const MOST_NAME_BYTES = 8 * 1024
/** Maximum number of characters of one value that may contain object names. A note is never longer than this. */
const LONGEST_NAME = 500

type Names = Pick<EventFacts, 'note' | 'outside' | 'guardrail' | 'scopes' | 'names_left_out'>

/**
 * Returns the values of an audit entry that may contain object names. Long values are clipped. Values for which there
 * is no room are left out and counted.
 */
function fitNames({ note, outside, guardrail, scopes }: AuditEntry): Names {
  let room = MOST_NAME_BYTES
  let left = 0
  const fit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(fit).filter((one) => one !== undefined)
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fit(one)]))
    if (value === undefined) return undefined
    const kept = typeof value === 'string' ? clipText(value, LONGEST_NAME) : value
    const bytes = Buffer.byteLength(visibleJson([kept]))
    if (bytes > room) {
      left += 1
      return undefined
    }
    room -= bytes
    return kept
  }
  const names = fit({ note, outside, guardrail, scopes }) as Names
  return { ...names, ...(left > 0 && { names_left_out: left }) }
}

/** Maximum number of characters of an identifier in a message. It keeps every message small. */
const LONGEST = 300

const clip = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)
const personOf = ({ iss, sub }: Owner): Owner => ({ iss: clip(iss), sub: clip(sub) })
const said = (sub: string | null | undefined): string => escapeText(clip(sub ?? 'nobody known'))

/** Describes an event in one sentence. The sentence names people and tools, but no objects of the PCE. */
function sentenceOf(type: string, { tool = 'a call', sub, asked_by: asker, approved_by: by, ...entry }: AuditEntry) {
  const { first_approved_by: firstBy, overrides } = entry
  const call = `${escapeText(tool)} of ${said(asker?.sub ?? sub)}`
  switch (type) {
    case 'approval.waiting':
      return `${call} waits for approval${overrides === undefined ? '' : ' by two people'}.`
    case 'approval.first_given':
      return `${said(sub)} approved ${call}, which waits for another person.`
    case 'approval.given':
      return `${said(sub)} approved ${call}${firstBy === undefined ? '' : `, as ${said(firstBy.sub)} had before`}.`
    case 'approval.denied':
      return `${said(sub)} denied ${call}.`
    case 'approval.used':
      return `${call} runs, approved by ${firstBy === undefined ? '' : `${said(firstBy.sub)} and `}${said(by?.sub)}.`
    case 'approval.expired':
      return `The approval of ${call} expired.`
    case 'approval.void':
      return `The approval of ${call} is void: the call would now do something else, or who approved it no longer may.`
    case 'approval.revoked':
      return `${said(sub)} revoked the approval of ${call}, or the request for it.`
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
