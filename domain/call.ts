import type { PceClient } from '../pce-client/index.js'
import type { ShownCall } from '../schemas/approvals.js'
import type { Caller } from '../schemas/caller.js'
import type { Limits } from '../schemas/config.js'
import type { Approval } from '../schemas/confirmations.js'
import type { CredentialsPort } from '../schemas/credentials.js'

/** Progress of a long call. `total` only where it is known. */
export interface ProgressUpdate {
  progress: number
  total?: number
  message?: string
}

export interface ToolLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/** What a tool may use: only ports, so that it runs the same over stdio, over HTTP and in a test. */
export interface ToolContext<RequiresPce extends boolean = boolean> {
  /** The caller's own PCE client; null for the tools that work without one. */
  readonly pce: RequiresPce extends true ? PceClient : PceClient | null
  readonly caller: Caller
  readonly requestId: string
  /** Aborted when the call is cancelled or its client is gone (reads only) or the server stops. */
  readonly signal: AbortSignal
  /**
   * Aborted when `signal` is, and for a mutating tool also when the call is cancelled or its client is gone. It covers the reads
   * before the first write, which may take minutes; once writing has begun it is ignored, because a write in progress is
   * completed.
   */
  readonly beforeWriting: AbortSignal
  readonly log: ToolLog
  readonly limits: Limits
  /** Signs the cursors of this caller on this PCE (D79): 32 bytes that never appear in an answer. Most calls need none. */
  cursorKey(): Uint8Array
  /** Milliseconds since the epoch. */
  now(): number
  /** Never throws; a client that did not ask for progress gets none. */
  progress(update: ProgressUpdate): void
  /** The caller's own PCE credentials: for the tools that manage them. */
  readonly credentials: CredentialsPort
  /**
   * What the person who confirmed was shown, where a confirm token carried it: the tool checks once more that this is what it is
   * about to do. Undefined where nothing was confirmed.
   */
  readonly approved?: Approval
  readonly server: {
    name: string
    version: string
    /** Text of CHANGELOG.md, or null if it was not shipped. */
    changelog(): Promise<string | null>
  }
}

/** What a person sees before confirming. */
export interface Preview {
  /** One or a few sentences. */
  summary: string
  /** Beside the summary in confirm_required; a few kilobytes at most. */
  details?: Record<string, unknown>
  /** For a page, where people decide: everything that the call changes (D146). Absent, the page shows `details`. */
  page?: Omit<ShownCall, 'summary'>
  /**
   * A digest of what is shown, as far as it is the call's doing: changes whenever what the call would write does, and not with counts
   * that move by themselves (D75). At most 128 characters.
   */
  boundTo: string
}
