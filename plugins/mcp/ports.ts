import type { ProgressUpdate, ToolContext } from '../../domain/call.js'
import type { Knowledge } from '../../knowledge/index.js'
import type { DeclinedCall, DecisionWatch, RequestState, RequestStates } from '../../schemas/approvals.js'
import type { Owner } from '../../schemas/caller.js'
import type { ServiceError } from '../errors/convert.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import type { ServerInfo } from './eras.js'
import type { ListOffered } from './offered-tools.js'
import type { Timers } from './progress.js'
import type { LegacyVersion } from './versions.js'

/** The server from the point of view of one client: for a request over HTTP, or for the process over stdio. */
export interface ServerPorts {
  info: ServerInfo
  /** The entries of tools/list, in order. */
  listTools: ListOffered
  /** The names of the tools that are offered to the caller. */
  offered: ReadonlySet<string>
  knowledge: Knowledge
  callTool: CallTool
  lookUp: LookUpFor
  /** The timers for the time limit of lookups; by default, the timers of Node.js. */
  timers?: Timers
  /** The number of the organisation at the caller's PCE; absent if the caller has no PCE. */
  orgId?: string
  /** Counts all tool calls of a request except the first against the caller's limit; rejects if there are too many. */
  charge?: (times: number) => Promise<void>
  /** Returns the request id of one tool call, for logs, the audit log and the PCE. */
  requestId: () => string
  /** Called with errors about which no caller can do anything, so that they are logged. */
  onFailure: (thrown: unknown) => void
  /** The functions for asking the caller's user; absent if calls never wait for a person, or if nobody can be asked. */
  asking?: Asking
  /**
   * Returns whether the client shows pages beside answers. It is used for requests that do not say so themselves; if it
   * is absent, such clients show no pages.
   */
  showsApps?: () => boolean
  /**
   * Called with the facts in the client's handshake: its `name/version`, the version that both sides will use, and what
   * it can show to its user.
   */
  onInitialize?: (client: string | undefined, version: LegacyVersion, shows: { forms: boolean; apps: boolean }) => void
}

/** The answers of the person at the client about a call so far, and whether this person can be asked. */
export interface Said {
  consent?: { boundTo: string }
  declined?: DeclinedCall
  canAsk?: boolean
}

/**
 * The dispatcher from the point of view of a transport: a function that runs one call of one caller and never rejects.
 */
export type CallTool = (
  call: {
    name: string
    arguments: Record<string, unknown>
    /** The confirm token in `params._meta.confirm_token`, unchecked. */
    confirmToken?: unknown
    requestId: string
    sender: Departure
    progress: (update: ProgressUpdate) => void
    trace?: TraceOrigin
  } & Said,
  /** The client, with the same meaning as in `InnerCall.client`. */
  client: string | null | undefined,
) => Promise<CalledTool>

export type CalledTool = { ok: true; value: object } | { ok: false; error: ServiceError }

/** The functions and facts that are needed for asking the caller's user in the middle of a call. */
export interface Asking {
  /** The caller; null if callers are not authenticated. */
  owner: Owner | null
  /** Functions that seal and open the state of a question. Their code may be loaded with the first question. */
  states: { seal(state: RequestState): string | Promise<string>; open: RequestStates['open'] }
  /** Computes the hash of arguments (D19). */
  hash: (args: Record<string, unknown>) => string | Promise<string>
  /** The watch for decisions; present if people decide on a page. */
  watch?: DecisionWatch
}

/**
 * Makes the client show a form to its user. Resolves with the answer; resolves with null if the client does not show
 * the form.
 */
export type Elicit = (form: { message: string; requestedSchema: object }) => Promise<unknown>

/** Looks something up for the caller of this server, through the dispatcher. */
type LookUpFor = <T>(
  question: { tool: string; requestId: string; signal: AbortSignal },
  read: (context: ToolContext<true>) => Promise<T>,
) => Promise<T | null>

/** The client's state, as far as a call needs to know whether the client still waits for the answer. */
export interface Departure {
  /** Aborts when the client cancels or has left. */
  readonly signal: AbortSignal
  /**
   * Returns true if the client has left. It is present if the transport knows this without the signal, because creating
   * the signal costs more than answering a simple request.
   */
  hasLeft?(): boolean
}

/** The facts about a request, and the functions, that are needed to answer it. */
export interface RequestPorts {
  id: string | number
  client: Departure
  /**
   * Shows a form to the client's user; present if the client has a connection and has said that its user can be asked.
   */
  elicit?: Elicit
  /** Sends a notification that belongs to the request. */
  readonly notify: (method: string, params: object) => void
}

/** The facts and functions that the transport provides for one request. */
export interface MessagePorts extends Departure {
  /** Sends a complete notification before the answer. */
  notify(message: object): void
}
