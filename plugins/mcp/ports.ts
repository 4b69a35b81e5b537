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

/** Everything that one client can use: over HTTP for one request, over stdio for the whole process. */
export interface ServerPorts {
  info: ServerInfo
  /** Returns the entries of tools/list for a set of offered tools, in the order of the list. */
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
  /**
   * Counts `times` additional tool calls towards the caller's limit, if one request causes several. Rejects if there
   * are too many.
   */
  charge?: (times: number) => Promise<void>
  /** Returns the request id for one tool call. The log, the audit log and the PCE receive it. */
  requestId: () => string
  /** Logs an unexpected error, about which no caller can do anything. */
  onFailure: (thrown: unknown) => void
  /** The functions for asking the caller's user; absent if no call waits for a person or nobody can be asked. */
  asking?: Asking
  /**
   * Returns true if the client can show pages beside answers. Called only for requests that do not say this themselves.
   * If it is absent, no pages are offered to such requests.
   */
  showsApps?: () => boolean
  /**
   * Called when a client sends `initialize`: with its `name/version`, the negotiated protocol version, and what it can
   * show to its user.
   */
  onInitialize?: (client: string | undefined, version: LegacyVersion, shows: { forms: boolean; apps: boolean }) => void
}

/** What the person at the client has answered about a call so far, and whether the person can be asked. */
export interface Said {
  consent?: { boundTo: string }
  declined?: DeclinedCall
  canAsk?: boolean
}

/** The dispatcher from the viewpoint of a transport: runs one call of one caller, and never rejects. */
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
  /** The MCP client, with the same meaning as in `InnerCall.client`. */
  client: string | null | undefined,
) => Promise<CalledTool>

export type CalledTool = { ok: true; value: object } | { ok: false; error: ServiceError }

/** The functions and facts that are needed to ask the caller's user something during a call. */
export interface Asking {
  /** The caller whose user is asked; null if callers are not authenticated. */
  owner: Owner | null
  /**
   * Seal and open the state of a question. They may be asynchronous, because their code may be loaded only with the
   * first question.
   */
  states: { seal(state: RequestState): string | Promise<string>; open: RequestStates['open'] }
  /** Computes the hash of the arguments of a call of the tool (D19). */
  hash: (tool: string, args: Record<string, unknown>) => string | Promise<string>
  /** Reports the decisions that people make on the approval page; absent if nobody decides on a page. */
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

/** Shows a call whether its client still waits for the answer. */
export interface Departure {
  /** The signal that aborts when the client cancels the call or has left. */
  readonly signal: AbortSignal
  /**
   * Returns true if the client has left. It is present if the transport can tell without `signal`, because creating the
   * signal costs more than answering a simple request.
   */
  hasLeft?(): boolean
}

/** The facts and functions that are needed to answer one request. */
export interface RequestPorts {
  id: string | number
  client: Departure
  /**
   * Shows a form to the client's user; present if the client has a connection and has said that its user can be asked.
   */
  elicit?: Elicit
  /** Sends a notification that belongs to the request being answered. */
  readonly notify: (method: string, params: object) => void
  /** True if the client gets no notifications, because it accepts nothing before the answer. */
  readonly isDeaf?: boolean
}

/** The facts and functions that the transport provides for one request. */
export interface MessagePorts extends Departure {
  /** Sends a notification before the answer. `message` is a complete JSON-RPC message. */
  notify(message: object): void
  /** Shows a form to the client's user, with the same meaning as in `RequestPorts`. */
  readonly elicit?: Elicit
  /** True if the client gets no notifications. */
  readonly isDeaf?: boolean
}
