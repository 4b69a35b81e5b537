import type { PceClient } from '../pce-client/index.js'
import type { ShownCall } from '../schemas/approvals.js'
import type { Caller } from '../schemas/caller.js'
import type { Limits } from '../schemas/config.js'
import type { Approval } from '../schemas/confirmations.js'
import type { CredentialsPort } from '../schemas/credentials.js'

/** The progress of a long call. `total` is present only when it is known in advance. */
export interface ProgressUpdate {
  progress: number
  total?: number
  message?: string
}

/** The exclusive right of a call to add to an object. It lasts for the duration of `inOrder`. */
export interface WriteTurn {
  /** The hrefs that other calls of this process have added to the object since this call began. */
  readonly others: ReadonlySet<string>
  /** Records the href of an object that the call has added. */
  readonly note: (href: string) => void
}

export interface ToolLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/**
 * Everything that a tool receives from the program that runs it. It consists only of interfaces, so that the same tool
 * runs over stdio, over HTTP and in a test.
 */
export interface ToolContext<RequiresPce extends boolean = boolean> {
  /** The PCE client that belongs to the caller; null for tools that work without one. */
  readonly pce: RequiresPce extends true ? PceClient : PceClient | null
  readonly caller: Caller
  readonly requestId: string
  /**
   * A signal that is aborted when the server stops. For a reading tool, it is also aborted when the call is cancelled
   * or its client has disconnected.
   */
  readonly signal: AbortSignal
  /**
   * A signal that is aborted together with `signal`. For a mutating tool, it is also aborted when the call is cancelled
   * or its client has disconnected. Such a tool uses it for the reads before its first write, which may take minutes.
   * After its first write, the tool ignores it, because a write that has begun is always completed.
   */
  readonly beforeWriting: AbortSignal
  /**
   * Runs work that adds to an object. Until it ends, no other call of this process adds to the same object, so what the
   * work reads stays true until it writes (D225). `object` is a type and a name. Rejects with `busy` if other calls
   * take too long; nothing has been written in that case.
   */
  readonly inOrder: <T>(object: string, work: (turn: WriteTurn) => Promise<T>) => Promise<T>
  readonly log: ToolLog
  readonly limits: Limits
  /**
   * Returns the key that signs the cursors of this caller on this PCE (D79): 32 bytes that never appear in an answer.
   * It is a function because most calls do not need the key.
   */
  cursorKey(): Uint8Array
  /** Returns the current time in milliseconds since the epoch. */
  now(): number
  /** Reports progress. It never throws, and it does nothing when the client did not ask for progress. */
  progress(update: ProgressUpdate): void
  /** The PCE credentials that belong to the caller, for the tools that manage them. */
  readonly credentials: CredentialsPort
  /**
   * A record of what the person who confirmed the call was shown, if a confirm token contained it. The tool compares it
   * with what the call is about to do. Undefined if nothing was confirmed.
   */
  readonly approved?: Approval
  /**
   * True if the caller needs only the digest of what the call would write, to compare it with a confirmation that is
   * being used. A dry run then leaves out everything that is only shown to people, such as observed traffic.
   */
  readonly isBindingOnly?: true
  /**
   * True if a person decides about the call on a web page. A preview then also reads what only that page shows, such as
   * the observed traffic that depends on pending changes.
   */
  readonly isForPage?: true
  readonly server: {
    name: string
    version: string
    /** Returns the text of CHANGELOG.md, or null if the file was not shipped. */
    changelog(): Promise<string | null>
  }
}

/** The preview of a call that a person sees before confirming it. */
export interface Preview {
  /** A summary of one or a few sentences. */
  summary: string
  /** The details shown next to the summary in a confirm_required answer. They should have at most a few kilobytes. */
  details?: Record<string, unknown>
  /**
   * All objects that the call changes, for the web page on which people approve calls (D146). Without it, the page
   * shows `details`.
   */
  page?: Omit<ShownCall, 'summary'>
  /**
   * A digest, at most 128 characters long, of the shown values that follow from the call itself. It changes whenever
   * the call would write something else, but not when counts merely change by themselves (D75).
   */
  boundTo: string
}
