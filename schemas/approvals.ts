import type { Identity, Owner } from './caller.js'
import type { PersonMethod } from './config.js'
import type { ConfirmedCall } from './confirmations.js'
import type { ChangeEffect } from './policy-changes.js'

/** On permitted traffic. `undecided`: nobody can tell; `mixed`: more of some and less of other traffic. */
export type ShownEffect = ChangeEffect | 'mixed' | 'undecided'

/** One field of an object. Values are JSON, with the name beside every href that has one; an absent side is one where it is not. */
export interface ShownField {
  /** Dotted, `name` or `ingress_services.0.port`. */
  path: string
  before?: unknown
  after?: unknown
}

/** One object that the call changes, or a part of one, such as a rule. */
export interface ShownObject {
  /** What it is, in words: `rule set`, `IP list`, `allow rule`, `application`, `request`. */
  kind: string
  name?: string
  href?: string
  change: 'create' | 'update' | 'delete' | 'unknown'
  effect?: ShownEffect
  /** Why it is mixed or undecided: a sentence. */
  effect_note?: string
  /** What to look at, each a sentence. */
  warnings?: string[]
  /** When its draft was last edited (UTC), and by whom, by name where one is known. */
  updated_at?: string
  updated_by?: string
  fields: ShownField[]
  /** The rules of a rule set, those that widen first. */
  parts?: ShownObject[]
  /** Why there are no differences, or which were left out for size: a sentence. */
  note?: string
}

/**
 * What a person is shown of a call before they decide. Texts have their hidden characters as visible escapes already (D27), and are text and
 * nothing else: whoever may create objects in a PCE has chosen them.
 */
export interface ShownCall {
  /** As in `confirm_required`. */
  summary: string
  /** Of the whole; absent where the call changes no policy. */
  effect?: ShownEffect
  /** What the whole comes to and to look at first, each a sentence: worst first. */
  warnings: string[]
  /** What widens comes first. */
  objects: ShownObject[]
  /** How many there are, where more than `objects` has. */
  objects_total: number
  /** Workloads with a VEN that the PCE counts affected; null where it does not say. Absent where the call enforces nothing. */
  workloads_affected?: number | null
  /** Whether that number is an estimate of the PCE's. */
  is_rough?: boolean
  /** Objects that the call did not name, and that what it names needs. */
  dependencies?: { kind: string; name?: string; href: string; required_by: string[] }[]
  /** What else is pending and stays so: the first ones. */
  not_included?: { total: number; objects: Pick<ShownObject, 'kind' | 'name' | 'href' | 'change'>[] }
  /** Of everything in `objects`: its oldest and its newest edit (UTC), and by whom. */
  draft?: { first_edit: string; last_edit: string; by: string[] }
  /** Further facts of the tool, as in `confirm_required`: for a tool that has no objects to show. */
  facts?: Record<string, unknown>
  /** Where something was left out, so that the whole stays within `MOST_SHOWN_BYTES`. */
  truncated?: true
}

/** Bytes of JSON of one `ShownCall`. */
export const MOST_SHOWN_BYTES = 256 * 1024

/** A call that waits for a person, or did. Made from the preview of the call and stored: the page reads nothing anew. */
export interface ApprovalRequest {
  /** 256 random bits in base64url: its name in its address, in the audit log and in answers. */
  id: string
  /** Who asks: whose call it is. */
  owner: Owner
  /** What the provider calls them, where that is known: to be shown beside `sub`, and to decide nothing. */
  ownerName?: string
  tool: string
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  /** `origin org N` of the PCE that the call would run on; absent for a tool that runs on none. */
  pce?: string
  /** `client_id` or `azp` of the asker's access token, else the user agent: what it calls itself, cleaned. */
  client?: string
  /** Of the call that asked. */
  requestId: string
  /** The digest of what the call would do (`Preview.boundTo`). */
  boundTo: string
  shown: ShownCall
  /** Milliseconds since the epoch. */
  askedAt: number
  expiresAt: number
}

export interface ApprovalDecision {
  verdict: 'approved' | 'denied'
  by: Identity
  /** At most `LONGEST_NOTE` characters, on one line, without hidden ones. */
  note?: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Characters of the note on a decision. */
export const LONGEST_NOTE = 500

/** `used`: its call was let run once. `void`: what it was for, or who decided, is no longer what it was. */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'used' | 'void' | 'expired'

/** What the audit log and the metrics tell of approvals. `lost`: a decision that came after another one. */
export const APPROVAL_EVENTS = ['asked', 'shown', 'approved', 'denied', 'used', 'void', 'expired', 'lost'] as const
export type ApprovalEvent = (typeof APPROVAL_EVENTS)[number]

/** A request with what has become of it. */
export interface AskedApproval {
  request: ApprovalRequest
  state: ApprovalState
  /** Kept for all states but `pending`, where somebody decided. */
  decision: ApprovalDecision | null
}

/**
 * What a person is to a request. `asker` and `admin` may decide; `watching` asked, and somebody else decides (two-person), or their role does
 * not allow the tool any more; `nobody` is shown nothing, as if there were no such request.
 */
export type ApprovalPart = 'asker' | 'admin' | 'watching' | 'nobody'

/**
 * Approvals, for the pages. Who somebody is comes from the login of the browser, never from a bearer token. Every method rejects with
 * ToolError `confirm_unavailable` where the store does not answer.
 */
export interface ApprovalDesk {
  readonly method: PersonMethod
  /** Null where there is none, it is older than it is kept, or it is not this server that wrote it. */
  find(id: string): Promise<AskedApproval | null>
  /** Writes into the audit log that this person was shown the request: once for each person and request in a process. */
  noteShown(request: ApprovalRequest, person: Identity, from: DecisionOrigin): Promise<void>
  /** The open requests that this person asked or may decide: the newest 100, with how many there are. */
  waitingFor(person: Identity): Promise<{ total: number; approvals: AskedApproval[] }>
  partOf(request: ApprovalRequest, person: Identity): ApprovalPart
  /**
   * Decides. Of several decisions, in any tabs and replicas, the first wins and stays; resolves with what stands now, and the audit log has it
   * on the disk by then. Rejects with ToolError `not_found` for whom the request does not exist, `forbidden` for who may see and not decide,
   * `approval_expired`, `audit_unavailable` and `confirm_unavailable`.
   */
  decide(
    id: string,
    decision: { verdict: 'approved' | 'denied'; by: Identity; note?: string },
    from: DecisionOrigin,
  ): Promise<{ won: boolean; approval: AskedApproval }>
}

/** What is asked of a person. */
export type ApprovalQuestion = Pick<ApprovalRequest, 'boundTo' | 'shown' | 'ownerName' | 'client' | 'requestId'>

/** `used`: the caller alone may run the call, once. `void`: it is to be asked again. */
export type Redemption = 'used' | 'replayed' | 'void'

/** Approvals, for the gate. Every method rejects with ToolError `confirm_unavailable` where the store does not answer. */
export interface Approvals {
  readonly method: PersonMethod
  /** Where people decide about it. */
  urlOf(id: string): string
  /** What was asked last for the call, if it was this server that wrote it. */
  find(call: ConfirmedCall): Promise<AskedApproval | null>
  /**
   * Asks, unless the same call is asked already. `instead`: the approval that it takes the place of, which is no answer to what would happen
   * now. `isNew`: it was this question that was opened.
   */
  ask(
    call: ConfirmedCall,
    question: ApprovalQuestion,
    instead?: string,
  ): Promise<{ asked: AskedApproval; isNew: boolean }>
  /**
   * Uses an approved one up: of all attempts in any number of processes exactly one ever resolves with `used`, and then that is on the disk.
   * `void` where what the call would do is no longer what was shown, or who approved it may not do so any more. `findBinding` may take longer
   * than the approval lives (D76); what it rejects with comes through, unless the approval turns out to have been used. Rejects with the reason
   * of `signal` where that is aborted before.
   */
  redeem(
    asked: AskedApproval,
    findBinding: () => Promise<string>,
    from: { signal?: AbortSignal; requestId: string },
  ): Promise<Redemption>
}

/** The request that brings a decision, for the audit log. */
export interface DecisionOrigin {
  requestId: string
  /** The user agent. */
  client?: string
  clientAddress?: string
}

/** Waits for people. */
export interface DecisionWatch {
  /**
   * Resolves once the approval is no longer pending as far as this process can tell, and when `signal` is aborted. What it has become is for
   * the repeated call to find out. Never rejects.
   */
  awaitDecision(id: string, signal: AbortSignal): Promise<void>
}

/** A no that the person gave in their client: to which call, and to which approval where that is on a page. */
export interface DeclinedCall {
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  approvalId?: string
}

/** What the state of a request that asks back is for (MCP 2026-07-28). */
export interface RequestFacts {
  /** Null where nobody authenticates. */
  owner: Owner | null
  /** `tools/call` and so on. */
  method: string
  /** Of the tool. */
  name: string
  /** Of its arguments. */
  paramsHash: string
}

export interface RequestState extends RequestFacts {
  /** How often it has asked before. */
  round: number
  /** What the person was shown (`Consent.boundTo`). */
  boundTo?: string
  /** Which approval it waits for. */
  approvalId?: string
}

/** What clients are handed to bring back with their answer. They can read it, and neither change it nor use it twice or elsewhere. */
export interface RequestStates {
  /** Lives for 15 minutes. */
  seal(state: RequestState): string
  /** Of what `seal` gave for these facts, once; null for anything else. Rejects with ToolError `confirm_unavailable`. */
  open(sealed: string, facts: RequestFacts): Promise<RequestState | null>
}
