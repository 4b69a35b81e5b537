import type { Identity, Owner } from './caller.js'
import type { PersonMethod } from './config.js'
import type { TouchedGuardrail } from './guardrails.js'
import type { ChangeEffect } from './policy-changes.js'
import type { ApprovalPlace } from './state.js'

/**
 * The effect of a change on the permitted traffic. `mixed` means that some traffic is added and other traffic removed;
 * `undecided` means that the effect cannot be determined.
 */
export type ShownEffect = ChangeEffect | 'mixed' | 'undecided'

/**
 * One changed field of an object. The values are JSON values; next to an href in a value stands the name of the object
 * with this href, if it has a name. `before` is missing if the field has no value before the change, `after` if it has
 * none after the change.
 */
export interface ShownField {
  /** Dotted path of the field, such as `name` or `ingress_services.0.port`. */
  path: string
  before?: unknown
  after?: unknown
}

/** Observed traffic between two applications, hosts or addresses that a change would cut or allow. */
export interface ShownTraffic {
  source: string
  destination: string
  /** The busiest ports, such as `443/tcp`. */
  ports: string[]
  connections: number
  /** The effect of the change on the traffic, in words: `would be cut`. */
  effect: string
  /** The last day (UTC) on which the traffic was seen, YYYY-MM-DD. */
  last_seen?: string
}

/** What observed traffic says about the change of one object. The digest of the call does not cover it. */
export interface ShownEvidence {
  /** A sentence about the traffic, or about the reason why nothing is known. */
  says: string
  /** The busiest of the traffic that the sentence is about. */
  traffic?: ShownTraffic[]
  /** Total number of pairs of source and destination; present if `traffic` has only some of them. */
  traffic_total?: number
}

/** One object that a call would change, or a part of such an object, for example one rule of a rule set. */
export interface ShownObject {
  /** The type of the object in words: `rule set`, `IP list`, `allow rule`, `application`, `request`. */
  kind: string
  name?: string
  href?: string
  change: 'create' | 'update' | 'delete' | 'unknown'
  effect?: ShownEffect
  /** A sentence that explains why the effect is mixed or undecided. */
  effect_note?: string
  /** Sentences about what the person should look at before deciding. */
  warnings?: string[]
  /**
   * Time (UTC) at which the draft of the object was last edited. `updated_by` is the person who made this edit, by name
   * if the name is known.
   */
  updated_at?: string
  updated_by?: string
  evidence?: ShownEvidence
  fields: ShownField[]
  /** If the object is a rule set, its rules; those that widen the policy come first. */
  parts?: ShownObject[]
  /** A sentence that explains why no differences are shown, or which differences were left out to save space. */
  note?: string
}

/**
 * An object to which a planned request to the PCE refers by href, in the state that the object had when the person was
 * asked to decide.
 */
export interface ShownReference {
  /** The type of the object in words: `service`, `label`. */
  kind: string
  name?: string
  href: string
  /**
   * The object's fields. Absent if the object could not be read or is too large; `note` then says which of the two is
   * the reason.
   */
  content?: Record<string, unknown>
  note?: string
}

/** The `note` of a reference whose content is too large to be shown. */
export const CONTENT_LEFT_OUT = 'What it contains is left out here: look at it in the PCE.'

/**
 * The view of a call that a person sees before deciding. Hidden characters in its texts have already been replaced by
 * visible escapes (D27). The texts must never be interpreted as markup, because anyone who may create objects in the
 * PCE can choose them.
 */
export interface ShownCall {
  /** The summary of the call, with the same text as in the error `confirm_required`. */
  summary: string
  /** The effect of the whole call on the permitted traffic; absent if the call changes no policy. */
  effect?: ShownEffect
  /** Sentences about the effect of the whole call and about what to look at first; the most serious come first. */
  warnings: string[]
  /** The changed objects; those that widen the policy come first. */
  objects: ShownObject[]
  /** Total number of changed objects, of which `objects` may hold only some. */
  objects_total: number
  /**
   * Number of workloads with a VEN that the call affects, as counted by the PCE; null if the PCE gives no number.
   * Absent if the call has no immediate effect on workloads.
   */
  workloads_affected?: number | null
  /** True if `workloads_affected` is only an estimate by the PCE. */
  is_rough?: boolean
  /**
   * The objects to which the hrefs in the planned requests refer, for tools whose preview is the list of requests to
   * the PCE that they would send. The digest of the call covers all these objects.
   */
  referred?: ShownReference[]
  /** Number of further objects to which the hrefs in the planned requests refer, but which were not read. */
  referred_unread?: number
  /**
   * Number of further objects to which the hrefs in the planned requests refer, and which were read but left out to
   * save space.
   */
  referred_left_out?: number
  /**
   * Sentences that say which observed traffic was examined for the `evidence` of the objects, or why it is not known;
   * absent if it was not requested. `read_at` is the time (RFC 3339, UTC) at which it was examined.
   */
  evidence?: { read_at: string; says: string }
  /** Objects that the call did not name but on which the named objects depend. */
  dependencies?: { kind: string; name?: string; href: string; required_by: string[] }[]
  /**
   * The pending changes that this call does not include and leaves pending. `total` counts all of them; `objects` lists
   * only the first ones.
   */
  not_included?: { total: number; objects: Pick<ShownObject, 'kind' | 'name' | 'href' | 'change'>[] }
  /**
   * Times (UTC) of the oldest and the newest edit of the objects in `objects`, and the names of the people who made the
   * edits.
   */
  draft?: { first_edit: string; last_edit: string; by: string[] }
  /** Further facts from the tool, as in `confirm_required`. Used by tools that have no objects to show. */
  facts?: Record<string, unknown>
  /** True if something was left out to stay within `MOST_SHOWN_BYTES`. */
  truncated?: true
}

/** Maximum size of the JSON of one `ShownCall`, in bytes. */
export const MOST_SHOWN_BYTES = 256 * 1024

/**
 * A call that waits, or waited, for a person's decision. The fields are taken from the preview of the call and stored,
 * so that the page shows exactly this preview and does not read the PCE again.
 */
export interface ApprovalRequest {
  /** 256 random bits in base64url. Identifies the request in its URL, in the audit log and in answers. */
  id: string
  /** The caller who made the call. */
  owner: Owner
  /** The caller's name according to the identity provider, if known. Shown beside `sub`; never used for decisions. */
  ownerName?: string
  tool: string
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  /** `origin org N` of the PCE that the call would run on; absent if the tool uses no PCE. */
  pce?: string
  /**
   * The client from which the call came: `client_id` or `azp` of the caller's access token, or else the cleaned user
   * agent, whose text is chosen by the client.
   */
  client?: string
  /** Request id of the call that needs the decision. */
  requestId: string
  /** Digest of what the call would do (`Preview.boundTo`). */
  boundTo: string
  shown: ShownCall
  /** The guardrails that the call touches; absent if there are none. */
  guardrails?: readonly TouchedGuardrail[]
  /**
   * Present if one of the guardrails needs two persons: the request is approved only after two different admins, neither
   * of them the caller, have approved it. A single denial ends it.
   */
  persons?: 2
  /** Time at which the person was asked for a decision, in milliseconds since the epoch. */
  askedAt: number
  expiresAt: number
}

export interface ApprovalDecision {
  verdict: 'approved' | 'denied'
  by: Identity
  /** The person's note on the decision: at most `LONGEST_NOTE` characters, on one line, without hidden characters. */
  note?: string
  /** Time of the decision, in milliseconds since the epoch. */
  at: number
}

/** Maximum number of characters in the note on a decision. */
export const LONGEST_NOTE = 500

/**
 * The state of an approval. `used` means that the call has been allowed to run, which happens only once. `void` means
 * that the call would now do something else, or that the person who decided is no longer permitted to decide. `revoked`
 * means that an admin took the request or its approval back.
 */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'used' | 'void' | 'expired' | 'revoked'

/**
 * Events about approvals in the audit log and the metrics. `approved_first` is the first approval of a call that needs
 * two. `lost` means that a decision or a revocation came too late, because another one had already been made, or the call
 * had begun.
 */
export const APPROVAL_EVENTS = [
  'asked',
  'shown',
  'approved_first',
  'approved',
  'denied',
  'used',
  'void',
  'expired',
  'lost',
  'revoked',
] as const
export type ApprovalEvent = (typeof APPROVAL_EVENTS)[number]

/** A request for approval, together with its state and the decision. */
export interface AskedApproval {
  request: ApprovalRequest
  state: ApprovalState
  /** The decision, which is kept in all later states; null if nobody has decided. */
  decision: ApprovalDecision | null
  /** The first approval of a call that needs two; null if there is none. It alone decides nothing. */
  first: ApprovalDecision | null
}

/**
 * A person's relation to a request for approval. `asker` (the caller who made the call) and `admin` may decide.
 * `watching` is the asker if somebody else must decide (two-person, or two persons), or if the asker's role no longer
 * allows the tool.
 * `nobody` sees nothing, as if the request did not exist.
 */
export type ApprovalPart = 'asker' | 'admin' | 'watching' | 'nobody'

/**
 * Access to approvals for the web pages. The person is identified by the browser login, never by a bearer token. Every
 * method rejects with ToolError `confirm_unavailable` if the store does not respond.
 */
export interface ApprovalDesk {
  readonly method: PersonMethod
  /** Finds a request; null if it does not exist, is too old to be kept, or was not written by this server. */
  find(id: string): Promise<AskedApproval | null>
  /**
   * Records in the audit log that this person was shown the request. Each process records this only once for the same
   * person and request.
   */
  noteShown(request: ApprovalRequest, person: Identity, from: DecisionOrigin): Promise<void>
  /**
   * Returns the open requests that this person made or may decide, the oldest first. At most 100 requests are returned
   * and, for an admin, at most 10 from each caller, so that the requests of one caller do not hide those of the others.
   * `total` counts all open requests.
   */
  waitingFor(person: Identity): Promise<{ total: number; approvals: AskedApproval[] }>
  /**
   * Returns the requests of all callers that wait for a decision, or were approved and not used yet. They are in the
   * order of their expiry. At most 25 are returned: those after `after`, or the first ones. Rejects with ToolError
   * `forbidden` unless the person has the role admin.
   */
  live(person: Identity, after: ApprovalPlace | null): Promise<LiveApprovals>
  /** Returns true if the person may revoke the request. Admins may revoke every request that has not ended. */
  mayRevoke(approval: AskedApproval, person: Identity): boolean
  /**
   * Ends a request, or an approval that was not used yet. Revoking and running the call exclude each other: across all
   * processes, whichever comes first counts. Resolves with the state that counts, as soon as its audit entry is on
   * disk; `won` is false if the request had ended before. Rejects with ToolError `not_found`, `forbidden`,
   * `audit_unavailable` and `confirm_unavailable` as `decide` does.
   */
  revoke(id: string, by: Identity, from: DecisionOrigin): Promise<{ won: boolean; approval: AskedApproval }>
  partOf(request: ApprovalRequest, person: Identity): ApprovalPart
  /**
   * Records a decision. If several decisions arrive, from any browser tab and at any replica, only the first one
   * counts. If a call needs two persons, the first approvals of two people count, or the first denial; a second
   * approval by the same person changes nothing. Resolves with the decision that counts (`won` if it is this one), as
   * soon as its audit entry is on disk. Rejects with ToolError `not_found` if the request does not exist or is not
   * visible to this person, `forbidden` if they may see it but not decide, `approval_expired`, `audit_unavailable` and
   * `confirm_unavailable`.
   */
  decide(
    id: string,
    decision: { verdict: 'approved' | 'denied'; by: Identity; note?: string },
    from: DecisionOrigin,
  ): Promise<{ won: boolean; approval: AskedApproval }>
}

/** One page of the list of all requests that can still lead to a run of their call. */
export interface LiveApprovals {
  approvals: AskedApproval[]
  /** The position after which the next page begins; null if this page is the last one. */
  next: ApprovalPlace | null
}

/** The HTTP request that carries a decision, for the audit log. */
export interface DecisionOrigin {
  requestId: string
  /** The user agent of the browser. */
  client?: string
  clientAddress?: string
}

/** Lets calls wait until a person decides. */
export interface DecisionWatch {
  /**
   * Resolves when this process learns that the approval is no longer pending, or when `signal` aborts. The caller then
   * repeats the call, which reads the new state. Never rejects.
   */
  awaitDecision(id: string, signal: AbortSignal): Promise<void>
}

/**
 * A call that the person has refused in their MCP client. `approvalId` is set if there is also an approval page for the
 * call.
 */
export interface DeclinedCall {
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  approvalId?: string
}

/**
 * The facts that identify a client's request about which the server asks a question (MCP 2026-07-28). The sealed state
 * of the question is valid only for a request with the same facts.
 */
export interface RequestFacts {
  /** The caller; null if callers are not authenticated. */
  owner: Owner | null
  /** The MCP method, such as `tools/call`. */
  method: string
  /** The name of the tool. */
  name: string
  /** Hash of the tool's arguments. */
  paramsHash: string
}

export interface RequestState extends RequestFacts {
  /** Number of questions that the client has already been asked for this request. */
  round: number
  /** Digest of what the person was shown (`Consent.boundTo`). */
  boundTo?: string
  /** Id of the approval for which the request waits. */
  approvalId?: string
}

/**
 * Seals and opens the state of a question that the server asks through the client. A client receives the sealed state
 * with the question and sends it back with the answer. The client can read it, but cannot change it, use it twice, or
 * use it for another request.
 */
export interface RequestStates {
  /** Seals a state. The sealed state can be opened within 15 minutes. */
  seal(state: RequestState): string
  /**
   * Opens a sealed state; null if it was sealed for other facts or has already been opened. Rejects with ToolError
   * `confirm_unavailable`.
   */
  open(sealed: string, facts: RequestFacts): Promise<RequestState | null>
}
